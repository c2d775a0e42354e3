import { boolean, duration, nullable, option, section } from '../kernel/config/index.ts';

/** Options about devices. */
export const devicesSection = section({
  title: 'Devices',
  options: {
    delete_stale_devices_after: option(nullable(duration()), {
      description:
        'Once a day, the main process logs out and deletes devices that have not been used for this long. Null keeps all devices.',
      default: null,
    }),
    allow_device_name_lookup_over_federation: option(boolean(), {
      description: 'Shows the names of devices to other servers.',
      default: false,
    }),
  },
});
