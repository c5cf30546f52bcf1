-- The batches at vendors: our name for each (marker), how far it is for us (state) and for the vendor (vendor_state), and
-- the vendor's id, stored before anybody waits for it.
CREATE TABLE vendor_batches (
    batch        text   NOT NULL REFERENCES batches (name) ON DELETE CASCADE,
    marker       text   NOT NULL,
    state        text   NOT NULL,
    requests     bigint NOT NULL,
    owner        text,
    lease        double precision,
    sent         double precision,
    vendor_id    text,
    candidates   text,
    vendor_state text   NOT NULL,
    done         bigint,
    created      double precision NOT NULL,
    PRIMARY KEY (batch, marker)
);
