import { readFileSync } from 'node:fs';
import type { HearthConfiguration } from '../configuration.ts';
import { type ListenerOptions, listenersOf } from '../kernel/http/index.ts';
import { CommandFailure } from './failure.ts';

/** The address of a server for requests to its admin API. */
export interface ServerAddress {
  /** A URL without a path, or `unix:` and the path of a socket. */
  readonly address: string;
  /** PEM of the certificate that the server must present; absent: any that is valid for the host of the URL. */
  readonly certificate?: string;
}

/**
 * Returns the address of the first listener that serves clients.
 * @throws CommandFailure when the configuration has none
 */
export function localServer(configuration: HearthConfiguration): ServerAddress {
  const listener = listenersOf(configuration.http).find(({ resources }) =>
    resources.some(({ names }) => names.includes('client')),
  );
  if (listener === undefined) throw new CommandFailure('no listener of the configuration serves clients');
  return addressOf(listener);
}

function addressOf({ bind }: ListenerOptions): ServerAddress {
  if (bind.kind === 'unix') return { address: `unix:${bind.path}` };
  const [first = '127.0.0.1'] = bind.addresses;
  const host = first === '::' || first === '0.0.0.0' ? 'localhost' : first;
  const address = `${bind.tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${bind.port}`;
  if (bind.tls === undefined) return { address };
  // The certificate is for the public name and not for the address of the listener, so this very one is required.
  try {
    return { address, certificate: readFileSync(bind.tls.certificate, 'utf8') };
  } catch {
    return { address };
  }
}
