-- Batches: what shapes their requests, their rows in order, and what became of each request. Money in billionths of a US
-- dollar, times in seconds since 1970.
CREATE TABLE batches (
    name            text   PRIMARY KEY,
    version         bigint NOT NULL,
    state           text   NOT NULL,
    via             text   NOT NULL,
    model           text   NOT NULL,
    plan            bytea  NOT NULL,
    plan_digest     text   NOT NULL,
    source          text   NOT NULL,
    source_digest   text   NOT NULL,
    output          text   NOT NULL,
    row_count       bigint NOT NULL,
    requests        bigint NOT NULL,
    done            bigint NOT NULL,
    failed          bigint NOT NULL,
    input_tokens    bigint NOT NULL,
    output_tokens   bigint NOT NULL,
    thinking_tokens bigint NOT NULL,
    cost            bigint NOT NULL,
    unpriced        bigint NOT NULL,
    reserved        bigint NOT NULL,
    next_request    double precision NOT NULL,
    next_token      double precision NOT NULL,
    paused_until    double precision NOT NULL,
    began           double precision NOT NULL,
    done_before     bigint NOT NULL,
    created         double precision NOT NULL,
    updated         double precision NOT NULL
);
CREATE TABLE batch_requests (
    batch        text   NOT NULL REFERENCES batches (name) ON DELETE CASCADE,
    hash         text   NOT NULL,
    number       bigint NOT NULL,
    request      bytea  NOT NULL,
    state        text   NOT NULL,
    owner        text,
    lease        double precision,
    attempts     bigint NOT NULL,
    reserved     bigint NOT NULL,
    result       bytea,
    vendor_batch text,
    PRIMARY KEY (batch, hash)
);
CREATE INDEX batch_requests_state ON batch_requests (batch, state, number);
CREATE INDEX batch_requests_vendor ON batch_requests (batch, vendor_batch) WHERE vendor_batch IS NOT NULL;
CREATE TABLE batch_rows (
    batch  text   NOT NULL REFERENCES batches (name) ON DELETE CASCADE,
    place  bigint NOT NULL,
    hash   text   NOT NULL,
    id     text,
    rest   bytea,
    PRIMARY KEY (batch, place)
);
CREATE INDEX batch_rows_hash ON batch_rows (batch, hash);
