import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { authorize } from '../../src/federation-client/requests/request-signature.ts';
import { type Route, type RouteContract, toMatrixSpelling } from '../../src/kernel/http/index.ts';
import { costAsMeasured, isAbove, lowest, threadCost } from '../support/clocks/thread-cost.ts';
import { ScriptedMember } from '../support/other-servers/scripted-member.ts';
import type { ScriptedServer } from '../support/other-servers/scripted-server.ts';
import { type FederatedServer, SeveralServers } from '../support/other-servers/several-servers.ts';
import { registerAdmin } from '../support/users/register-admin.ts';
import { TestClient } from '../support/users/test-client.ts';

/**
 * Allowed milliseconds of CPU for a request of at most 20 MiB. Other requests wait during the longest turn of the event
 * loop.
 */
const allowed = { total: 200, longest: 50, process: 200 };

/** Milliseconds of CPU that each mebibyte of a body may cost: a body above 20 MiB may cost more than `allowed`. */
const allowedPerMebibyte = 5;

/**
 * Returns the allowed cost of a request. The total cost may grow with the body, but not the longest time for which the
 * request blocks others.
 */
function allowedFor({ body, times = 1 }: DrivenRequest): typeof allowed {
  const forBody = (allowedPerMebibyte * (body?.length ?? 0) * times) / 2 ** 20;
  return { ...allowed, total: Math.max(allowed.total, forBody), process: Math.max(allowed.process, forBody) };
}

/** Number of attempts. The cheapest one counts: the others may include garbage collection and compilation. */
const attempts = 6;

/** The parts of a request besides its path. */
export interface DrivenRequest {
  readonly query?: string;
  readonly body?: Buffer;
  readonly type?: string;
  /** How often the body is sent in one request; once by default. */
  readonly times?: number;
}

/** Sends requests to every route of a server that is in a room with another server, and counts their cost. */
export class RouteDriver {
  readonly #several: SeveralServers;
  readonly #server: FederatedServer;
  readonly #token: string;
  readonly #remoteServer: ScriptedServer;
  readonly #administrator: string;
  readonly #pathParameters: Readonly<Record<string, string>>;
  /** Parameters in paths of the admin API: a user and a room that its requests may delete. */
  readonly #deletable: Readonly<Record<string, string>>;
  #count = 0;

  private constructor(
    several: SeveralServers,
    server: FederatedServer,
    token: string,
    remoteServer: ScriptedServer,
    administrator: string,
    pathParameters: Readonly<Record<string, string>>,
    deletable: Readonly<Record<string, string>>,
  ) {
    this.#several = several;
    this.#server = server;
    this.#token = token;
    this.#remoteServer = remoteServer;
    this.#administrator = administrator;
    this.#pathParameters = pathParameters;
    this.#deletable = deletable;
  }

  static async open(): Promise<RouteDriver> {
    const several = new SeveralServers('sqlite');
    const listener = { port: 0, type: 'http', bind_addresses: ['127.0.0.1'] } as const;
    const resources = [{ names: ['client', 'federation'] }] as const;
    // Requests are sent without TLS, because encryption costs the sender as much as the server.
    const listeners = [
      { ...listener, resources },
      { ...listener, tls: true, resources },
    ];
    const server = await several.homeserver('a.test', { config: { http: { listeners } as never } });
    const user = await server.register('alice');
    const alice = new TestClient(server, user);
    const otherServer = await several.scripted('other.test');
    const roomId = await alice.createRoom({ preset: 'public_chat', room_version: '11' });
    const member = await ScriptedMember.join(otherServer, 'a.test', roomId, '@guest:other.test');
    await member.say('its key is known');
    const eventId = await alice.say(roomId, 'first');
    for (let batch = 0; batch < 20; batch++) {
      await Promise.all(Array.from({ length: 10 }, (_, index) => alice.say(roomId, `${batch} ${index}`)));
    }
    const administrator = await registerAdmin(server);
    const target = new TestClient(server, await server.register('target'));
    const targetRoom = await target.createRoom();
    const names = {
      roomId,
      roomIdOrAlias: roomId,
      eventId,
      userId: alice.id,
      deviceId: user.deviceId,
      serverName: 'a.test',
      receiptType: 'm.read',
      kind: 'override',
      eventType: 'm.test',
      relType: 'm.thread',
      scope: 'global',
      queryType: 'profile',
    };
    return new RouteDriver(several, server, user.token, otherServer, administrator.token, names, {
      ...names,
      userId: target.id,
      roomId: targetRoom,
      roomIdOrAlias: targetRoom,
    });
  }

  /** All routes, except those that end the session or the membership of the user. */
  get routes(): readonly Route[] {
    return this.#server.homeserver.routes.filter(
      ({ contract: { operationId } }) => !endsSession.has(operationId ?? ''),
    );
  }

  stop(): Promise<void> {
    return this.#several.stop();
  }

  /**
   * Sends the request several times, until its cost is within the limits.
   * @returns a description of the cost if it is too high
   */
  async excess(route: Route, what: string, driven: DrivenRequest): Promise<string | undefined> {
    const { method, path } = route.contract;
    const limit = allowedFor(driven);
    const name = `${method} ${typeof path === 'string' ? path : path[0]} with ${what}`;
    let cheapest = { total: Infinity, longest: Infinity, process: Infinity };
    let status = 0;
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const send = this.#prepare(route, driven, this.#server.baseUrl);
      const measure = attempt === 1 ? costAsMeasured : threadCost;
      const cost = await measure(async () => {
        status = await send();
      });
      assert.ok(status < 500 || status === 502 || status === 504, `${name} answers ${status}`);
      cheapest = lowest(cheapest, cost);
      if (!isAbove(cheapest, limit)) return undefined;
    }
    const clientCost = await this.#clientCost(route, driven);
    const withClient = { ...limit, total: limit.total + clientCost, process: limit.process + clientCost };
    if (!isAbove(cheapest, withClient)) return undefined;
    const [all, thread, longest, client] = [
      cheapest.process,
      cheapest.total,
      cheapest.longest,
      clientCost,
    ].map(Math.round);
    return `${name}, answered with ${status}, cost ${all} ms of CPU: ${thread} ms on the main thread, up to ${longest} ms in one turn, ${client} ms to send the request`;
  }

  /**
   * Returns the CPU time that this process needs to send the request, measured with a server that answers at
   * once without reading it.
   */
  async #clientCost(route: Route, driven: DrivenRequest): Promise<number> {
    const idle = createServer((request, response) => {
      request.resume();
      request.on('end', () => response.end('{}'));
    });
    await once(idle.listen(0, '127.0.0.1'), 'listening');
    const send = this.#prepare(route, driven, `http://127.0.0.1:${(idle.address() as AddressInfo).port}`);
    let cheapest = Number.POSITIVE_INFINITY;
    for (let left = attempts; left > 0; left--)
      cheapest = Math.min(cheapest, (await threadCost(send)).process);
    idle.close();
    idle.closeAllConnections();
    return cheapest;
  }

  /** Returns a function that sends the request, which is signed already where another server sends it. */
  #prepare(
    { contract }: Route,
    { query, body, type = 'application/json', times = 1 }: DrivenRequest,
    baseUrl: string,
  ) {
    const { hostname, port } = new URL(baseUrl);
    const { method } = contract;
    const path = this.#pathOf(contract) + (query === undefined ? '' : `?${query}`);
    const headers = {
      authorization: this.#authorization(contract, path, body),
      ...(body && { 'content-type': type, 'content-length': body.length * times }),
    };
    return async (): Promise<number> => {
      const sent = request({ hostname, port, method, path, headers });
      const response = once(sent, 'response') as Promise<[IncomingMessage]>;
      // A request that is refused early is answered before all of its body is sent.
      sent.on('error', () => undefined);
      for (let part = 1; body && part < times; part++) {
        const waiting = new AbortController();
        const { signal } = waiting;
        if (!sent.write(body)) await Promise.race([once(sent, 'drain', { signal }), response]);
        waiting.abort();
      }
      sent.end(body);
      const [answer] = await response;
      await text(answer);
      return answer.statusCode!;
    };
  }

  #authorization({ auth, method }: RouteContract, uri: string, body: Buffer | undefined): string {
    if (auth === 'admin') return `Bearer ${this.#administrator}`;
    if (auth !== 'server') return `Bearer ${this.#token}`;
    const { name: origin, key } = this.#remoteServer;
    return authorize({ method, uri, origin, destination: 'a.test', content: body?.toString() }, key);
  }

  /** Fills in the parameters of a path. */
  #pathOf(contract: RouteContract): string {
    const path = typeof contract.path === 'string' ? contract.path : contract.path[0]!;
    const namesToReplace = contract.auth === 'admin' ? this.#deletable : this.#pathParameters;
    const names: Readonly<Record<string, string>> = { ...namesToReplace, txnId: `txn${this.#count++}` };
    return toMatrixSpelling(
      path.replace(/:(\w+)/g, (_, name: string) => encodeURIComponent(names[name] ?? 'x')),
    );
  }
}

/** Operations that end the session of the test's user, or the membership in the room. */
const endsSession: ReadonlySet<string> = new Set(['logout', 'logout_all', 'leaveRoom', 'forgetRoom']);
