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
    /** 1 for a device that nobody uses: it only gathers messages. */
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
  /** Where a user's device list changed last; one row per user, so that it can not grow without bound. */
  device_list_changes: { user_id: string; position: number };
  /** Devices of local users of whose changes other servers have not been told. */
  unannounced_devices: {
    user_id: string;
    /** Empty for the user's cross-signing keys. */
    device_id: string;
    /** Of the last change. */
    position: number;
  };
}
