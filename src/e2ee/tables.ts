/** The tables of keys. Keys and signatures are JSON or unpadded base64, as clients sent them. */
export interface E2eeTables {
  /** Identity keys of the devices of local users, with those signatures that everybody may see. */
  device_keys: { user_id: string; device_id: string; keys: string };
  /** Keys that nobody has claimed yet; the lowest `id` was uploaded first. */
  one_time_keys: {
    id: number;
    user_id: string;
    device_id: string;
    algorithm: string;
    key_id: string;
    key: string;
    /** Tells keys apart that have the same id. */
    digest: string;
  };
  /** The last keys of each device that were claimed, so that they are not taken in once more. */
  claimed_one_time_keys: {
    user_id: string;
    device_id: string;
    id: number;
    algorithm: string;
    key_id: string;
    digest: string;
  };
  fallback_keys: {
    user_id: string;
    device_id: string;
    algorithm: string;
    key_id: string;
    key: string;
    digest: string;
    /** 1 when the key was handed out. */
    used: number;
  };
  /** Master, self-signing and user-signing keys of local users, with those signatures that everybody may see. */
  cross_signing_keys: { user_id: string; usage: string; public_key: string; keys: string };
  /** What users have signed of others with their user-signing keys: for their own eyes. */
  user_signatures: {
    user_id: string;
    target_user_id: string;
    /** The master key that was signed. */
    target_key: string;
    /** The user-signing key that signed, as `ed25519:<key>`. */
    key_id: string;
    signature: string;
    /** Where on the stream it was made. */
    position: number;
  };
  /** The number of the last backup that a user made, which may be gone. */
  room_key_versions: { user_id: string; last_version: number };
  room_key_backups: {
    user_id: string;
    version: number;
    algorithm: string;
    auth_data: string;
    /** Counts the changes of the keys in the backup. */
    etag: number;
    /** How many keys are in the backup. */
    key_count: number;
  };
  room_keys: {
    user_id: string;
    version: number;
    room_id: string;
    session_id: string;
    first_message_index: number;
    forwarded_count: number;
    is_verified: number;
    session_data: string;
  };
  /** Users of other servers whose devices are known here, as long as they share a room with a local user. */
  remote_device_lists: {
    user_id: string;
    /** The user's server. */
    server: string;
    /** JSON array of the ids of the last updates that the list contains, the newest last. */
    stream_ids: string;
    /** 1 when an update was missed, or the list was never fetched: what is here is not to be relied on. */
    stale: number;
    /** Counts how often the list has become stale, so that what was asked for before is not taken for what is now. */
    revision: number;
    master_key: string | null;
    self_signing_key: string | null;
  };
  remote_devices: { user_id: string; device_id: string; keys: string };
  dehydrated_devices: { user_id: string; device_id: string; device_data: string };
}
