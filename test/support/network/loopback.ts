import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TlsOptions } from 'node:tls';
import type { Resolver, SrvRecord } from '../../../src/kernel/outbound/index.ts';

export interface LoopbackServer {
  readonly server: Server;
  readonly port: number;
  close(): Promise<void>;
}

/** Serves on a free port of the loopback address, over TLS when options for it are given. */
export async function serveOnLoopback(listener: RequestListener, tls?: TlsOptions): Promise<LoopbackServer> {
  const server: Server = tls ? (createTlsServer(tls, listener) as unknown as Server) : createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    server,
    port: (server.address() as AddressInfo).port,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** A DNS resolver that knows only the names that a test adds. */
export class FakeResolver implements Resolver {
  readonly hosts = new Map<string, readonly string[]>();
  readonly srv = new Map<string, readonly SrvRecord[]>();
  /** SRV names whose look-up fails with ESERVFAIL. */
  readonly failing = new Set<string>();
  /** All names that were looked up, in order. */
  readonly lookedUpNames: string[] = [];

  async addresses(host: string) {
    this.lookedUpNames.push(host);
    const addresses = this.hosts.get(host);
    if (!addresses) throw Object.assign(new Error(`no such host: ${host}`), { code: 'ENOTFOUND' });
    return addresses.map((address) => ({
      address,
      family: address.includes(':') ? (6 as const) : (4 as const),
    }));
  }

  async services(name: string) {
    this.lookedUpNames.push(name);
    if (this.failing.has(name))
      throw Object.assign(new Error('the name server failed'), { code: 'ESERVFAIL' });
    return this.srv.get(name) ?? [];
  }
}
