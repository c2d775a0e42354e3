import type { ConfigurationOverrides } from './server.ts';

/** The options of a listener that reads the addresses of clients from `X-Forwarded-For`. */
export const forwardedListener: NonNullable<ConfigurationOverrides['http']> = {
  listeners: [
    {
      port: 0,
      type: 'http',
      x_forwarded: true,
      bind_addresses: ['127.0.0.1'],
      resources: [{ names: ['client'] }],
    },
  ],
} as never;
