import { boolean, duration, nullable, option, section } from '../kernel/config/index.ts';

/** Devices of users. */
export const devicesSection = section({
  title: 'Devices',
  options: {
    delete_stale_devices_after: option(nullable(duration()), {
      description:
        'Devices that have not been used for this long are logged out and deleted, once a day, on the main process. Null keeps them.',
      default: null,
    }),
    allow_device_name_lookup_over_federation: option(boolean(), {
      description: 'Lets other servers read the names that users gave their devices.',
      default: false,
    }),
  },
});
