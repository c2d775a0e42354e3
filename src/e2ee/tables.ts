/** The tables of end-to-end encryption. Keys and signatures are JSON or unpadded base64 as uploaded. */
export interface E2eeTables {
  /** Identity keys of the devices of local users, with the signatures that every user may see. */
  device_keys: { user_id: string; device_id: string; keys: string };
  /** Unclaimed keys; the `id` increases in the order of uploads. */
  one_time_keys: {
    id: number;
    user_id: string;
    device_id: string;
    algorithm: string;
    key_id: string;
    key: string;
    /** A hash of the key: a different key with the same id has another digest. */
    digest: string;
  };
  /** The last claimed keys of each device. They must not be stored again as unclaimed keys. */
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
    /** 1 when the key was claimed. */
    used: number;
  };
  /**
   * Master, self-signing and user-signing keys of local users, with the signatures that every user may see.
   */
  cross_signing_keys: { user_id: string; usage: string; public_key: string; keys: string };
  /** Signatures by user-signing keys. Only the user who made a signature may see it. */
  user_signatures: {
    user_id: string;
    target_user_id: string;
    /** The signed master key. */
    target_key: string;
    /** The user-signing key as `ed25519:<key>`. */
    key_id: string;
    signature: string;
    /** The stream position of the signature. */
    position: number;
  };
  /** The version of the last backup that a user created; the backup may be deleted. */
  room_key_versions: { user_id: string; last_version: number };
  room_key_backups: {
    user_id: string;
    version: number;
    algorithm: string;
    auth_data: string;
    /** The number of changes of the keys. */
    etag: number;
    /** The number of keys in the backup. */
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
  /** Device lists of remote users who share a room with a local user. */
  remote_device_lists: {
    user_id: string;
    /** The server of the user. */
    server: string;
    /** JSON array with the ids of the last applied updates, newest last. */
    stream_ids: string;
    /** 1 when an update was missed, or the list was never fetched. */
    stale: number;
    /**
     * Increases each time an update is missed, also while the list is stale, so that a fetch notices updates that arrived
     * during its request.
     */
    revision: number;
    master_key: string | null;
    self_signing_key: string | null;
  };
  remote_devices: { user_id: string; device_id: string; keys: string };
  dehydrated_devices: { user_id: string; device_id: string; device_data: string };
}
