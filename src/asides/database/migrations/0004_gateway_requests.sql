-- One row for each request that a gateway has answered: who asked which model, how it ended, and its figures. No content.
-- Money in billionths of a US dollar, times in seconds since 1970, durations in milliseconds, days as "2026-11-16" (UTC).
CREATE TABLE gateway_requests (
    id            text   PRIMARY KEY,
    at            double precision NOT NULL,
    day           text   NOT NULL,
    instance      text   NOT NULL,
    key           text   NOT NULL,
    tenant        text   NOT NULL,
    client        text   NOT NULL,
    dialect       text   NOT NULL,
    action        text   NOT NULL,
    asked         text   NOT NULL,
    model         text   NOT NULL,
    mode          text   NOT NULL,
    status        bigint NOT NULL,
    ended         text   NOT NULL,
    input         bigint,
    cached        bigint,
    output        bigint,
    thinking      bigint,
    cost          bigint,
    first_thought double precision,
    first_answer  double precision,
    total         double precision NOT NULL,
    restored      bigint NOT NULL,
    missed        bigint NOT NULL,
    attempts      bigint NOT NULL
);
CREATE INDEX gateway_requests_by_time ON gateway_requests (at);
CREATE INDEX gateway_requests_of_tenant ON gateway_requests (tenant, at);
