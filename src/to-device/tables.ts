/** The tables of to-device messages. Times are milliseconds since the epoch. */
export interface ToDeviceTables {
  /** Messages that the device has not acknowledged yet; at most one per device and position. */
  to_device_messages: {
    user_id: string;
    device_id: string;
    position: number;
    /** `{sender, type, content}` as JSON. */
    message: string;
  };
  /** Recent transactions, so that messages are not sent again when a request is repeated. */
  to_device_transactions: {
    /** A local user id or the name of another server. */
    origin: string;
    /** Empty for other servers, and for application services without a device. */
    device_id: string;
    /** Hash of message type, transaction id and sender. */
    digest: string;
    sent_at: number;
  };
}
