/** The tables of devices. Times are milliseconds since the epoch. */
export interface DeviceTables {
  devices: {
    user_id: string;
    device_id: string;
    display_name: string | null;
    created_at: number;
    last_seen_at: number | null;
    last_seen_ip: string | null;
    last_seen_user_agent: string | null;
    /** 1 for a dehydrated device. It only receives messages. */
    dehydrated: number;
  };
  /** Addresses that a device was used from. */
  user_ips: {
    user_id: string;
    /** Empty for application services that act without a device. */
    device_id: string;
    ip: string;
    user_agent: string;
    last_seen_at: number;
  };
  /**
   * When each user last used a device, including deleted devices; 0 for users who never used a device, and for erased
   * users. The admin API lists users in this order.
   */
  user_activity: { user_id: string; last_seen_at: number };
  /** Stream positions of the last change of each user's device list; one row per user bounds the table. */
  device_list_changes: { user_id: string; position: number };
  /** Changes of the devices of local users that are pending for other servers. */
  unannounced_devices: {
    user_id: string;
    /** Empty for the user's cross-signing keys. */
    device_id: string;
    /** Position of the last change. */
    position: number;
  };
}
