import type { HttpConfig } from '../config.ts';
import type { Route } from '../routing/route.ts';
import type { ListenerConfig } from './listener-options.ts';
import type { ListenerOptions, TcpBinding, UnixBinding } from './listeners.ts';
import type { ListenerResource } from './resources.ts';

/** Default permissions of a Unix socket. */
const defaultSocketMode = 0o666;

/** The resources of a listener of type `metrics`. */
const metricsOnly: readonly ListenerResource[] = [{ names: ['metrics'], compress: false }];

/**
 * Returns the HTTP listeners of the configuration, but no listener of the debugging console (manhole).
 * @param additionalRoutes the routes of the `additional_resources` of each listener
 */
export function listenersOf(
  config: HttpConfig,
  additionalRoutes: ReadonlyMap<ListenerConfig, readonly Route[]> = new Map(),
): ListenerOptions[] {
  return config.listeners
    .filter(({ type }) => type !== 'manhole')
    .map((listener) => ({
      name: listener.tag ?? String(listener.path ?? listener.port),
      additionalRoutes: additionalRoutes.get(listener) ?? [],
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
