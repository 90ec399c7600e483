-- Times are milliseconds since 1970 in UTC. The project is '' for the streams
-- and records of the deployment itself. JSON is text as serialised once.

CREATE TABLE streams (
    id         INTEGER PRIMARY KEY,
    project    TEXT NOT NULL,
    path       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    max_offset INTEGER NOT NULL CHECK (max_offset >= 0),
    UNIQUE (project, path)
) STRICT;

CREATE TABLE events (
    id              INTEGER PRIMARY KEY,
    stream          INTEGER NOT NULL REFERENCES streams (id),
    "offset"        INTEGER NOT NULL CHECK ("offset" >= 1),
    type            TEXT NOT NULL,
    payload         TEXT NOT NULL,
    metadata        TEXT,
    idempotency_key TEXT,
    created_at      INTEGER NOT NULL,
    UNIQUE (stream, "offset")
) STRICT;

CREATE UNIQUE INDEX events_by_key ON events (stream, idempotency_key)
    WHERE idempotency_key IS NOT NULL;

-- A filtered read finds its events without walking over the others.
CREATE INDEX events_by_type ON events (stream, type, "offset");

CREATE TABLE records (
    kind       TEXT NOT NULL,
    project    TEXT NOT NULL,
    key        TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    version    INTEGER NOT NULL,
    json       TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (kind, project, key)
) STRICT;

-- The last revision given to any record; never goes back, so that a record
-- which is deleted and made again does not get an old revision.
CREATE TABLE revisions (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL
) STRICT;
INSERT INTO revisions (id, last) VALUES (1, 0);
