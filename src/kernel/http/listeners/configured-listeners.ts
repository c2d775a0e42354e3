import type { HttpConfig } from '../config.ts';
import type { ListenerConfig } from './listener-options.ts';
import type { ListenerOptions, TcpBinding, UnixBinding } from './listeners.ts';
import type { ListenerResource } from './resources.ts';

/** Permissions of a Unix socket when the configuration says nothing. */
const defaultSocketMode = 0o666;

/** What a listener of type `metrics` serves. */
const metricsOnly: readonly ListenerResource[] = [{ names: ['metrics'], compress: false }];

/** The HTTP listeners of the configuration; those of the debugging console are not among them. */
export function listenersOf(config: HttpConfig): ListenerOptions[] {
  return config.listeners
    .filter(({ type }) => type !== 'manhole')
    .map((listener) => ({
      name: listener.tag ?? String(listener.path ?? listener.port),
      bind: bindingOf(listener, config),
      resources: listener.type === 'metrics' ? metricsOnly : listener.resources,
      forwarded: listener.x_forwarded ?? listener.path !== null,
      requestIdHeader: listener.request_id_header ?? undefined,
    }));
}

function bindingOf(listener: ListenerConfig, config: HttpConfig): TcpBinding | UnixBinding {
  if (listener.path !== null) {
    return { kind: 'unix', path: listener.path, mode: listener.mode ?? defaultSocketMode };
  }
  const { tls_certificate_path: certificate, tls_private_key_path: key } = config;
  const files = certificate === null || key === null ? undefined : { certificate, key };
  return {
    kind: 'tcp',
    port: listener.port ?? 0,
    addresses: listener.bind_addresses ?? ['::', '0.0.0.0'],
    tls: listener.tls ? files : undefined,
  };
}
