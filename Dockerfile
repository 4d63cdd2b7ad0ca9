# docker build -t mzseek . && docker run --rm -v "$PWD:/data" mzseek annotate my.mgf --out answers
# With --build-arg EXTRAS='[web]' it has `mzseek serve`; compose.yml runs that.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE requirements.lock ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
ARG EXTRAS=""
RUN apt-get update \
    && apt-get install --yes --no-install-recommends libxrender1 libxext6 libexpat1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 mzseek \
    && mkdir /data && chown mzseek /data
COPY --from=build /wheels /wheels
COPY requirements.lock /tmp/
# The locked versions as limits: only what the base install, and the extras, need.
RUN pip install --no-cache-dir --constraint /tmp/requirements.lock "$(ls /wheels/*.whl)$EXTRAS" && rm -rf /wheels /tmp/requirements.lock
USER mzseek
WORKDIR /data
ENTRYPOINT ["mzseek"]
CMD ["--help"]
