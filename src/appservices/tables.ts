/** The kind of an entry in the outbox of a service. */
export type EntryKind = 'event' | 'to-device' | 'device list' | 'unshared user' | 'key counts';

/** The tables of application services. */
export interface AppserviceTables {
  /** The entries that each service has to receive: one for each event, to-device message or other change. */
  appservice_outbox: {
    service_id: string;
    /** Position of the change on the streams. */
    position: number;
    kind: EntryKind;
    /** Database number (nid) of the event; 0 for other kinds. */
    event_nid: number;
    /**
     * For device lists and unshared users, a user id, or a room id, which stands for the joined members of the room.
     * For to-device messages and key counts, a user id, a space and a device id. Empty for events.
     */
    subject: string;
  };
  /** The last transaction of each service, and the paths that it serves. */
  appservice_queues: {
    service_id: string;
    /** Number of the last transaction. */
    txn_id: number;
    /** The transaction as JSON until the service has accepted it. */
    body: string | null;
    /** The paths that the service serves (`Spelling`); null until it was reached. */
    spelling: string | null;
  };
  /** One row: the position up to which the outbox is complete. */
  appservice_progress: { id: number; position: number };
}
