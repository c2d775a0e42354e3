/** The tables of statistics. Days and hours are in UTC. */
export interface StatisticsTables {
  /** One row for each day when the server ran. */
  statistics_days: {
    /** Days since the epoch. */
    day: number;
    /** As counted last on the day, like `rooms`, `media_bytes` and `database_bytes`; null before the first count. */
    users: number | null;
    /** As counted last on the day or one of the two days after it; null before the first count. */
    active_users: number | null;
    rooms: number | null;
    media_bytes: number | null;
    database_bytes: number | null;
    /** Messages of local and remote users, encrypted ones included. */
    messages: number;
    /** Messages of local users, encrypted ones included. */
    local_messages: number;
  };
  /** Messages of the last hours. */
  statistics_hours: {
    /** Hours since the epoch. */
    hour: number;
    /** Messages of local and remote users that are not encrypted. */
    plain: number;
    /** Messages of local users that are not encrypted. */
    local_plain: number;
    /** Encrypted messages of local and remote users. */
    encrypted: number;
    /** Encrypted messages of local users. */
    local_encrypted: number;
  };
  /** One row: messages up to this position are counted. */
  statistics_position: { id: number; position: number };
  /** The local users who sent requests on a day, with the kind of their client. */
  user_visits: { day: number; user_id: string; client: string };
  /** When the last messages of rooms arrived; rooms without messages in the last two days are absent. Only for usage reports. */
  statistics_active_rooms: {
    room_nid: number;
    /** When the last message that is not encrypted arrived, in milliseconds since the epoch; or 0. */
    plain_at: number;
    /** When the last encrypted message arrived, in milliseconds since the epoch; or 0. */
    encrypted_at: number;
  };
}
