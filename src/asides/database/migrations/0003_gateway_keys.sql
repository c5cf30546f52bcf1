-- The keys of gateways, what they have spent, and what requests under way have reserved. Money in billionths of a US
-- dollar, days as "2026-11-16", times in seconds since 1970.
CREATE TABLE gateway_keys (
    id           text   PRIMARY KEY,
    digest       bytea  NOT NULL UNIQUE,
    name         text   NOT NULL,
    tenant       text   NOT NULL,
    models       text   NOT NULL,
    rpm          bigint,
    tpm          bigint,
    budget_day   bigint,
    budget_month bigint,
    created      double precision NOT NULL,
    expires      double precision,
    revoked      double precision,
    used         double precision
);
CREATE UNIQUE INDEX gateway_key_names ON gateway_keys (name) WHERE revoked IS NULL;
CREATE INDEX gateway_keys_revoked ON gateway_keys (revoked);
CREATE TABLE gateway_spending (
    key      text   NOT NULL REFERENCES gateway_keys (id) ON DELETE CASCADE,
    day      text   NOT NULL,
    spent    bigint NOT NULL,
    requests bigint NOT NULL,
    PRIMARY KEY (key, day)
);
CREATE TABLE gateway_reservations (
    id      text   PRIMARY KEY,
    key     text   NOT NULL REFERENCES gateway_keys (id) ON DELETE CASCADE,
    day     text   NOT NULL,
    amount  bigint NOT NULL,
    expires double precision NOT NULL
);
CREATE INDEX gateway_reservations_of_key ON gateway_reservations (key, day);
