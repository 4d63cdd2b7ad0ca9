// The report: a page that holds the data of its features itself.
featureTable((place) => Object.assign(JSON.parse(by("d" + place).textContent), { place: +place }));
