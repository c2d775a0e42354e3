/** The tables of to-device messages. Times are milliseconds since the epoch. */
export interface ToDeviceTables {
  /** Messages that their device has not acknowledged; a device has at most one at a position. */
  to_device_messages: {
    user_id: string;
    device_id: string;
    position: number;
    /** `{sender, type, content}` as JSON. */
    message: string;
  };
  /** What was sent lately, so that it is not sent again when the request is repeated. */
  to_device_transactions: {
    /** A user of this server, or another server. */
    origin: string;
    /** Empty for servers, and for application services that act without a device. */
    device_id: string;
    /** Stands for the type of the messages and the transaction id. */
    digest: string;
    sent_at: number;
  };
}
