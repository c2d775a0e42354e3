import { nullable, option, type SectionType, section, string } from '../config/index.ts';
import { listenersOption } from './listeners/listener-options.ts';
import { listenerRules } from './listeners/listener-rules.ts';

/** The addresses on which the server listens, and its certificate. */
export const httpSection = section({
  title: 'Listeners and TLS',
  description: 'The ports and sockets on which the server listens, and its certificate.',
  options: {
    listeners: listenersOption,
    tls_certificate_path: option(nullable(string({ minLength: 1 })), {
      description:
        'The PEM file of the certificate for listeners with `tls`, followed by its intermediate certificates. Other servers verify it, so a recognised authority must have signed it.',
      default: null,
      reloadable: true,
    }),
    tls_private_key_path: option(nullable(string({ minLength: 1 })), {
      description: 'The PEM file of the private key that belongs to the certificate.',
      default: null,
      reloadable: true,
    }),
  },
  rules: [
    ({ listeners }, view) => {
      for (const [index, listener] of listeners.entries()) {
        for (const rule of listenerRules) view.tryRule(() => rule(listener, `listeners[${index}]`, view));
      }
    },
    ({ listeners, tls_certificate_path, tls_private_key_path }, view) => {
      if (tls_certificate_path !== null && tls_private_key_path !== null) return;
      for (const [index, { tls, path }] of listeners.entries()) {
        if (!tls || path !== null) continue;
        view.error(`listeners[${index}].tls`, 'needs tls_certificate_path and tls_private_key_path');
      }
    },
  ],
});

export type HttpConfig = SectionType<typeof httpSection>;
