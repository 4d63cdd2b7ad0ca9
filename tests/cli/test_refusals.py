"""Bad input of every command: status 2, one line that says why, and nothing is written."""

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest

from mzseek.database import build_database
from mzseek.database.sources import file_sources
from mzseek.parallel import LocalEngine

# A command, and what its line says. Names are those that `folder` has; nowhere is none of them.
CASES = """
prepare nowhere.tsv --out x => nowhere.tsv: no such file
prepare library.msp --out x => is MSP, expected a table; `mzseek data build`
prepare set.tsv --out /proc/nowhere/x => /proc/nowhere/x: cannot be made
prepare set.tsv --out x --out y => --out: is given 2 times, expected once
annotate one.mgf --database store --database=morgan2 => --database: is given 2 times, expected once
prepare set.tsv --out x --fingerprint ecfp => 'ecfp' is unknown
prepare set.tsv --out x --candidates hard => expected NAME=FILE
data check nowhere => nowhere: no such folder
data check set.tsv => set.tsv: is a file, expected a folder
data get pubchem => data set 'pubchem' is unknown, expected one of: massspecgym
data get massspecgym --version 7 => '7' is unknown
data build nowhere.mgf --molecules good.smi --out x => nowhere.mgf: no such file
data build one.mgf --out x => --database or --molecules, and none was given
data build one.mgf --out x --database store --molecules good.smi => and both were given
data build one.mgf --out x --database store --keep-database y => --keep-database is for what --mol
data build one.mgf --out x --database store --keep-stereo => has no stereo in its SMILES
data build one.mgf --out x --database store --priority pubchem => is no source of
data build one.mgf --out x --database mine => is no molecule database
data match nowhere --database store => nowhere: is no prepared folder
data match prepared --database nowhere => nowhere: is no molecule database
data match prepared --database store --by colour => matched lists by 'colour'
data match prepared --database store --name mass => that are no matched ones
data match prepared --database store --name a/b => expected small letters
data match prepared --database store --keep 2 => keep
demo --out mine => mine: exists and is no demo
demo --out set.tsv => set.tsv: is a file
database build nowhere.smi --out x => nowhere.smi: no such file
database build bad.csv --out x => no molecule could be read (first: bad.csv: line 2
database build good.smi --out mine => mine: exists and is no molecule database
database build good.smi --out good.smi => good.smi: is a file
database build good.smi --out x --fingerprint ecfp => 'ecfp' is unknown
database build good.smi --out x --engine dask => engine 'dask' is unknown
database build good.smi --out x --address a:1 => 'local' has no address
database build bad.csv --out x --smiles-column b => bad.csv:
database pubchem mine --out x => mine: has no CID-SMILES.gz
database add nowhere good.smi => nowhere: is no molecule database
database add store nowhere.smi => nowhere.smi: no such file
database info mine => mine: is no molecule database
database check nowhere => nowhere: is no molecule database
database export store all.xlsx => all.xlsx: expected a name that ends in .tsv
database export store store/all.tsv => all.tsv: lies in the source
database search nowhere --mass 1 => nowhere: is no molecule database
database search store => no query is given, expected one of --mass
database search store --mass 1 --formula C => --mass and --formula are given, expected one of
database search store --mass -1 => mass -1: expected a positive number
database search store --mass 1 --ppm nan => nan ppm: expected 0 or more
database search store --mass 1 --cap 0 => --cap
database search store --like CCO --cap 1 => --cap is for masses, precursors and formulas
database search store --mass 1 --adduct [M+H]+ => --adduct is for --precursor
database search store --mass 46 --cap 1 --priority pubchem => 'pubchem' is no source of
database search store --masses nowhere.txt => nowhere.txt: no such file
database search store --masses prose.txt => prose.txt: holds nothing to look up
database search store --formula C2H6Xx => has the unknown element 'Xx'
database search store --formula co => can be read as CO or Co
database search store --precursor 100 --adduct [M+Xx]+ => unknown part 'Xx'
database search store --precursor 1 --adduct [M+Na]+ => too small
database search store --inchikey caffeine => 'caffeine' is no InChIKey
database search store --like C1CC => 'C1CC': not valid SMILES
negatives prepared --database nowhere => nowhere: is no molecule database
negatives nowhere --database store => nowhere: is no prepared folder
negatives store --database store => store: is a molecule database, expected a prepared folder;
negatives prepared --database prepared => prepared: is a prepared folder, expected a molecule database;
negatives prepared --database store --by colour => negatives by 'colour'
negatives prepared --database store --kind soft => negatives 'soft' is unknown
negatives prepared --database store --engine dask => engine 'dask' is unknown
negatives prepared --database morgan2 => has morgan2 fingerprints, and prepared has maccs
train nowhere --loss bce --out x => nowhere: is no prepared folder
train prepared --loss mse --out x => loss 'mse' is unknown, expected one of: bce, focal
train prepared --loss bce --model gpt --out x => model 'gpt' is unknown, expected one of
train prepared --loss fp-cos --candidates hard --out x => it has: formula, mass
train prepared --loss bce --epochs 0 --out x => epochs is 0, expected more than 0
train prepared --loss bce --temperature 1 --out x => option 'temperature' is unknown, it has no options
train prepared --loss bce --set encoder.depth=2 --out x => option 'depth' is unknown, expe
train prepared --loss bce --set head.bias=2 --out x => part 'head' is unknown, expected one
train prepared --loss bce --set encoder.dropout=x --out x => dropout is 'x', expected a number
train prepared --loss bce --set gamma=2 --out x => expected PART.OPTION=VALUE
train prepared --loss bce --bias one --out x => bias 'one' is unknown
train prepared --loss iou --offset prior --out x => --offset prior: iou is no listwise loss
train prepared --loss bce --protocol mine --out x => protocol 'mine' is unknown, expected
train prepared --loss bce --start-from nowhere --out x => nowhere: is no run folder
train prepared --loss bce --width 10000000 --out x => GB; a width of
train prepared --loss bce --batch-size 1000000000 --out x => expected at most 52, the number
train prepared --loss bce --out bce => holds a run already; go on with --resume
train prepared --loss bce --out mine => exists and is no run
train prepared --loss bce --epochs 2 --out bce --resume => was begun with encoder.width 32, not 1024
fit prepared --channels fragmnts --out x => channel 'fragmnts' is unknown, expected one of: fragments
fit prepared --channels analogs --candidates y --out x => has no candidates 'y', it has:
fit prepared --channels analogs --fit-on all --out x => --fit-on 'all' is unknown, expected one
fit prepared --channels analogs --spectra y --out x => spectra 'y' is unknown, expected one of: o
fit prepared --channels analogs --set analogs.top=0 --out x => top is 0, expected 1 to 1000
evaluate nowhere => nowhere: is no run folder (there is no such folder)
evaluate prepared => is a prepared folder, expected a run folder; `mzseek train`
evaluate emb-cos --similarity tanimoto => emb-cos predicts none
evaluate bce --candidates hard => has no candidates 'hard', it has: formula, mass
evaluate bce --fold final => fold 'final' is unknown, expected one of: train, val, test
evaluate bce --ties lucky => ties 'lucky' is unknown
evaluate bce --identity name => identity 'name' is unknown
evaluate bce --similarity dice => similarity 'dice' is unknown
evaluate bce --control nowhere => nowhere: is no run folder
evaluate bce --control bce => --control bce: is the run itself; name another to compare with
evaluate bce --bits-over ./bce => --bits-over bce: is the run itself; name another to compare with
evaluate bce --control link => --control link: is the run itself; name another to compare with
evaluate bce --data nowhere => nowhere: is no prepared folder
evaluate bce --together cluster => together 'cluster' is unknown, expected one of: mol
evaluate bce --bits-over nowhere => nowhere: is no run folder
evaluate bce --table mine => is a folder, expected a file to write
evaluate bce --no-decode --table bce/history.csv => lies in the source
evaluate bce --mces -1 => --mces
report nowhere --out x => is no run folder
report bce --candidates hard --out x => hard
report bce --fold all --out x => fold 'all' is unknown
report bce --ties fair --out x => ties 'fair' is unknown
bands nowhere => nowhere: is no prepared folder
bands prepared --fingerprint ecfp => fingerprint 'ecfp' is unknown, expected one of: morg
bands prepared --similarity dice => similarity 'dice' is unknown, expected one of: bits, t
bands prepared --candidates hard => no candidates 'hard', it has: formula, mass
bands prepared --fold final => fold 'final' is unknown, expected one of: train, val, test
bands prepared --against all => against 'all' is unknown, expected one of: truth, pairs
bands prepared --figure bands.png => bands.png: expected a name that ends in .svg
advise nowhere => nowhere: is no prepared folder
advise prepared --goal f1 => --goal 'f1' is unknown, expected one of: hit, tanimoto
advise prepared --p-star 1.5 => --p-star is 1.5, expected above 0 and at most 1
advise prepared --fingerprint ecfp => fingerprint 'ecfp' is unknown, expected one of: morg
advise prepared --candidates hard => no candidates 'hard', it has: formula, mass
advise prepared --fingerprint maccs --run nowhere => nowhere: is no run folder
decide nowhere.csv => nowhere.csv: no such file
decide . => is a folder, expected a file
decide scores.csv --within some => --within 'some' is unknown, expected one of: candidates
decide scores.csv --temperature 0 => temperature is 0, expected above 0
decide toy.csv --temperature 2 => has a column probability: --temperature 2 would change
decide toy.csv --fingerprint maccs => has a column fingerprint: --fingerprint maccs would
decide scores.csv --fingerprint ecfp => fingerprint 'ecfp' is unknown, expected one of: morg
reproduce mian --out x => experiment 'mian' is unknown, expected one of: main, front
reproduce gamma --scale large --out x => scale 'large' is unknown, expected one of: paper
reproduce gamma --engine slurm --out x => engine 'slurm' is unknown
reproduce toy --out mine => exists and holds no experiments; name another --out
library search nowhere library.msp => nowhere: is no spectral library
library info mine => is no spectral library
model info nowhere => is no model bundle
model export nowhere --out x => is no run folder
model build nowhere --out x => no such file
annotate nowhere.mgf => nowhere.mgf: no such file
annotate one.mgf --model model --objective luck => objective 'luck'
annotate one.mgf --model model --adduct [M+Xx]+ => [M+Xx]+
annotate one.mgf --model model --peak-ppm ten => tolerance 'ten'
annotate empty.mgf --instrument tof => instrument 'tof' is unknown, expected one of: orbitrap, qtof
annotate one.mgf --model model --group mass => grouping 'mass'
annotate one.mgf --model model --database nowhere => nowhere: no such file or folder
annotate one.mgf --model model --library nowhere => nowhere
annotate one.mgf --model model --coverage 0.9999 => coverage is 0.9999
annotate one.mgf --model model --out out.docx => ends in none of
annotate one.mgf --model model --formulas nowhere.csv => nowhere.csv
annotate one.mgf --model model --engine ray => --engine ray: give --out
annotate one.mgf --model model --engine dask --out x => engine 'dask' is unknown, expected one of: local, ray
annotate one.mgf --model model --columns mz=a,intensity=b => one.mgf: is MGF, which has no columns
annotate one.mgf --model model --columns x => expected NAME=COLUMN, once for each of: mz, inten
annotate one.mgf --model model --ranking-columns id --out x.csv => expected two names, such as id,smiles
annotate one.mgf --model model --prior nowhere.csv => nowhere.csv: no such file, expected none, learned or
annotate one.mgf --model model --out model --force => name another --out
annotate one.mgf --model model --out model/out.tsv --force => name another --out
show nowhere.mgf => nowhere.mgf: no such file
show empty.mgf => empty.mgf: the file is empty
show notes.md => notes.md: not a spectrum file
show good.smi => SIRIUS, mzML, mzXML, JSON, MSP; give candidates as --database
show one.mgf nothing => nothing: the folder holds no files
show one.mgf --svg x.png => expected a name that ends in .svg
show one.mgf --rejects mine => is a folder
show one.mgf --rejects one.mgf => is the file to be shown
show one.mgf --svg notes.md/x.svg => cannot be made
show one.mgf --spectrum 1 --rejects r.tsv => leave out --spectrum
show one.mgf --spectrum ' ' => --spectrum: is empty, expected an identifier, a name or a number
show one.mgf --spectrum nothing => none of 1 spectrum has the identifier or name 'nothing'; there are
show one.mgf --spectrum 10 => has 1 spectrum, so there is no number 10
show one.mgf --spectrum '#0' => none of 1 spectrum has the identifier or name '#0'
show prepared => is a prepared folder, expected spectra; `mzseek bands prepared`
show bce => is a run folder, expected spectra; `mzseek evaluate bce`
show dataset => is a data set, expected spectra; `mzseek show dataset/spectra.tsv.gz`
show store => is a molecule database, expected spectra; `mzseek database info store`
train store --loss bce --out x => store: is a molecule database, expected a prepared folder;
train dataset --loss bce --out x => dataset: is a data set, expected a prepared folder;
bands bce => bce: is a run folder, expected a prepared folder;
advise store => store: is a molecule database, expected a prepared folder;
data match store --database store => store: is a molecule database, expected a prepared folder;
evaluate bce --data store => store: is a molecule database, expected a prepared folder;
evaluate bce --control dataset => dataset: is a data set, expected a run folder;
database search prepared --mass 100 => prepared: is a prepared folder, expected a molecule database;
database add bce good.smi => bce: is a run folder, expected a molecule database;
database export dataset x.tsv => dataset: is a data set, expected a molecule database;
prepare prepared --out x => prepared: is a prepared folder, expected a data set;
prepare store --out x => store: is a molecule database, expected a data set;
data check bce => bce: is a run folder, expected a data set;
"""  # noqa: E501
FILES = {
    "set.tsv": "identifier\tmzs\tintensities\tsmiles\tprecursor_mz\nA\t50\t1\tCCO\t47.05\n",
    "library.msp": "Name: a\nPrecursorMZ: 100\nNum Peaks: 1\n50 1\n",
    "one.mgf": "BEGIN IONS\nPEPMASS=47.0491\nADDUCT=[M+H]+\nSMILES=CCO\n29.04 1\nEND IONS\n",
    "empty.mgf": "",
    "notes.md": "a text",
    "prose.txt": "It was a dark and stormy night.\n",
    "good.smi": "CCO\n",
    "bad.csv": "smiles\nC1CC\nC1CN\n",
    "scores.csv": "smiles,score\nCCO,1\n",
    "toy.csv": "fingerprint,probability\n110,0.4\n011,0.6\n",
    "mine/thesis.txt": "precious",
    "dataset/manifest.json": '{"kind": "data set"}',
}


@pytest.fixture(scope="session")
def folder(
    small_set: Any, trained: Any, bundle_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    made = tmp_path_factory.mktemp("refused")
    for name in ("mine", "nothing", "dataset"):
        (made / name).mkdir()
    for name, text in FILES.items():
        (made / name).write_text(text)
    for loss in ("bce", "emb-cos"):
        shutil.copytree(trained(loss).folder, made / loss)
    (made / "link").symlink_to(made / "bce")
    shutil.copytree(small_set.folder, made / "prepared")
    shutil.copytree(bundle_folder, made / "model")
    sources = file_sources([made / "good.smi"])
    for name, kind in {"store": "maccs", "morgan2": "morgan2"}.items():
        build_database(sources, made / name, fingerprint=kind, engine=LocalEngine(1))
    return made


def written(folder: Path) -> dict[Path, int]:
    """All files, and when each was written last."""
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("line", CASES.strip("\n").splitlines(), ids=lambda line: line[:60])
def test_bad_input_is_one_line_and_status_2(
    line: str, folder: Path, assert_refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words, _, message = line.partition(" => ")
    before = written(folder)
    assert_refused(message, *shlex.split(words))
    assert written(folder) == before
