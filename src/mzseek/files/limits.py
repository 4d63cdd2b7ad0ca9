"""The bounds of all readers, in one place: what no real file reaches, and what memory can bear.

A record past its bound is set aside and the next one is read; where a format cannot go on, the file
ends with a reason. Either way what lies beyond is skipped piece by piece and never held: no input
may take more than a few hundred megabytes, however small it was packed. ``docs/formats.md`` lists
the bounds for users; ``tests/files/test_limits.py`` compares the two.
"""

# Text. A line of a table holds a whole spectrum, which takes some 3 million characters at most.
MAX_LINE = 4_000_000  # bytes
MAX_PEAKS = 100_000  # a record
MAX_PEAK_TEXT = 8_000_000  # characters of a record's peak lines, notes beside the peaks included
MAX_FIELDS = 10_000  # a record
MAX_FIELD_TEXT = 4_000_000  # characters of a record's fields together
MAX_KEY = 1_000  # characters of a field's name

# Molecules. A row with all their names is far shorter; what is longer has lost a line end. In SDF a
# protein of 30,000 atoms has some 4 million characters; what is longer has lost its end.
MAX_ROW = 1_000_000  # characters
MAX_SDF_RECORD = 8_000_000  # characters
MAX_WORKBOOK = 256_000_000  # bytes of all parts of a workbook, which is held as a whole
MAX_QUERIES = 500_000  # masses in a file to look up, all of which are held

# A file is given up where so many records in a row cannot be read: there is nothing in it, and each
# of them is a line in somebody's list.
MAX_FAULTS = 250_000

# JSON. Brackets of three characters take eighty bytes once they are parsed, so values count too.
MAX_MEMBER = 16_000_000  # characters of a member of the outermost array or object
MAX_VALUES = 1_000_000  # a member

# XML. An element with a text and ten attributes takes a kilobyte.
MAX_ELEMENTS = 100_000  # a record
MAX_ELEMENT_TEXT = 16_000_000  # characters of a record's texts and attributes together
MAX_TAG = 1_000_000  # bytes of one tag, comment or the like
MAX_NAMES = 10_000  # different names of elements and attributes in a file
MAX_DEPTH = 200  # elements inside one another

# Packing. What a packed file may need to be unpacked, and how much may come out of it.
MAX_WINDOW = 1 << 27  # bytes that zstd may look back
MAX_ZIP_MEMBERS = 250_000
MAX_ZIP_DIRECTORY = 64_000_000  # bytes of a zip archive's list of members
# Text packs to a tenth, seldom to a fiftieth. What unfolds to more than so many times its size, a
# gigabyte at least, was made to keep a reader busy.
MAX_RATIO = 300
RATIO_FROM = 1 << 30
