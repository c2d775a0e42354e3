import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { createSecureContext } from 'node:tls';
import {
  FakeResolver,
  type LoopbackServer,
  serveOnLoopback,
} from '../../../../test/support/network/loopback.ts';
import type { Certificate, TestAuthority } from '../../../../test/support/network/test-authority.ts';

/** A response of the reverse proxy to a request that it does not pass on. */
export interface FrontAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * The network around a server: a reverse proxy with TLS in front of the server, another server on the internet, and a
 * CONNECT proxy. The CONNECT proxy leads to the other two, because tests cannot listen on port 443. DNS answers are
 * made up.
 */
export interface PublicNetwork {
  readonly resolver: FakeResolver;
  /** For the option `https_proxy`. */
  readonly proxy: string;
  /** Replaces responses of the reverse proxy, by path; `*` stands for all paths that are not given. */
  readonly answers: Map<string, FrontAnswer>;
  /** Changes the path that the reverse proxy passes on. */
  passedPath: (path: string) => string;
  /** Addresses (`host:port`) that refuse connections. */
  readonly closed: Set<string>;
  /** Milliseconds that the clock of the other server is ahead. */
  otherClock: number;
  /** Presents another certificate for a name; `undefined` presents the right one. */
  present(name: string, certificate: Certificate | undefined): void;
  close(): Promise<void>;
}

/** The address of all names. It is public, because the checks report names with private addresses. */
const publicAddress = '198.41.0.4';

const names = ['example.org', 'matrix.example.org', 'keys.example'] as const;

/** Opens the network around a server. @param port of the server behind the reverse proxy */
export async function openPublicNetwork(port: number, authority: TestAuthority): Promise<PublicNetwork> {
  const usual = authority.issue(...names);
  const presented = new Map<string, Certificate>();
  const answers = new Map<string, FrontAnswer>();
  const closed = new Set<string>();
  const state = { otherClock: 0, passedPath: (path: string) => path };
  const front = await serveOnLoopback(
    (request, response) => {
      const path = request.url!;
      if (request.headers.host === 'keys.example') {
        const date = new Date(Date.now() + state.otherClock).toUTCString();
        response.writeHead(200, { date }).end('{}');
        return;
      }
      const replacement = answers.get(path) ?? answers.get('*');
      if (replacement === undefined) return passOn(request, response, port, state.passedPath(path));
      response.writeHead(replacement.status ?? 200, { ...replacement.headers }).end(replacement.body ?? '');
    },
    {
      ...usual,
      SNICallback: (name, done) => done(null, createSecureContext(presented.get(name) ?? usual)),
    },
  );
  const tunnel = await openTunnels(front.port, closed);
  const resolver = new FakeResolver();
  for (const name of names) resolver.hosts.set(name, [publicAddress]);
  return Object.assign(state, {
    resolver,
    proxy: `http://127.0.0.1:${tunnel.port}`,
    answers,
    closed,
    present(name: string, certificate: Certificate | undefined) {
      if (certificate) presented.set(name, certificate);
      else presented.delete(name);
    },
    async close() {
      await tunnel.close();
      await front.close();
    },
  });
}

function passOn(request: IncomingMessage, response: ServerResponse, port: number, path: string): void {
  const { method = 'GET', headers } = request;
  const passed = httpRequest({ host: '127.0.0.1', port, method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode!, answer.headers);
    answer.pipe(response);
  });
  passed.on('error', () => response.writeHead(502).end('bad gateway'));
  request.pipe(passed);
}

async function openTunnels(front: number, closed: ReadonlySet<string>): Promise<LoopbackServer> {
  const tunnels = await serveOnLoopback((_request, response) => response.end());
  tunnels.server.on('connect', (request, socket) => {
    if (closed.has(request.url!)) return void socket.end('HTTP/1.1 504 Gateway Timeout\r\n\r\n');
    const target = connect(front, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      target.pipe(socket).pipe(target);
    });
    for (const end of [socket, target]) end.on('error', () => undefined);
  });
  return tunnels;
}
