import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { authorize } from '../../src/federation-client/requests/request-signature.ts';
import { type Route, type RouteContract, toMatrixSpelling } from '../../src/kernel/http/index.ts';
import { pathsOf } from '../../src/kernel/http/routing/route.ts';
import { canonicalJson, type JsonObject } from '../../src/protocol/index.ts';
import { eventually } from '../clients/eventually.ts';
import { costAsMeasured, exceeds, lowest, threadCost } from '../support/clocks/thread-cost.ts';
import type { TestClient } from '../support/users/test-client.ts';
import { type AcceptedValues, acceptedValues } from './accepted-values.ts';
import { readAnswer } from './answers.ts';
import { type Fixture, openFixture } from './fixture.ts';

/**
 * Allowed milliseconds of CPU for a request: the fields of `ThreadCost`. Other requests wait during the longest turn of
 * the event loop.
 */
const allowed = { total: 200, longest: 50, process: 200 };

/** Number of attempts. The cheapest one counts: the others may include garbage collection and compilation. */
const attempts = 6;

/** The parts of a request besides its path. */
export interface DrivenRequest {
  readonly query?: string;
  readonly body?: Buffer;
  /** The content type of the body; JSON by default. */
  readonly type?: string;
  /** How often the body is sent in one request; once by default. */
  readonly times?: number;
}

/** The answer to a request, and a description of its cost if it is too high. */
export interface Outcome {
  /** The status, and for errors the error code. */
  readonly answer: string;
  readonly excess?: string;
}

/** Returns the name of a route in the lists of these tests: its method and its first path. */
export const nameOf = (route: Route): string => `${route.contract.method} ${pathsOf(route)[0]}`;

/**
 * Sends requests to every route and measures their cost. One server has all features and is in a room with another
 * server. A second server has the routes of delegated authentication.
 */
export class RouteDriver {
  readonly #fixture: Fixture;
  readonly #delegatedRoutes: readonly Route[];
  /** Returns values that a route accepts. */
  readonly valuesOf: (route: Route) => AcceptedValues;

  private constructor(fixture: Fixture) {
    this.#fixture = fixture;
    const names = new Set(fixture.server.homeserver.routes.map(nameOf));
    this.#delegatedRoutes = fixture.delegating.homeserver.routes.filter((route) => !names.has(nameOf(route)));
    const values = acceptedValues(fixture.subjects);
    this.valuesOf = (route) => values(nameOf(route));
  }

  static async open(): Promise<RouteDriver> {
    return new RouteDriver(await openFixture());
  }

  /** All routes, except those that end the session or the membership of the user. */
  get routes(): readonly Route[] {
    const routes = this.#fixture.server.homeserver.routes.filter(
      ({ contract: { operationId } }) => !endsSessionOrMembership.has(operationId ?? ''),
    );
    return [...routes, ...this.#delegatedRoutes];
  }

  stop(): Promise<void> {
    return this.#fixture.stop();
  }

  /**
   * Sends the request until its cost is within the limits, a bounded number of times.
   * @param what describes the request in `Outcome.excess`
   * @returns the first answer
   */
  async drive(route: Route, what: string, driven: DrivenRequest): Promise<Outcome> {
    const name = `${nameOf(route)} with ${what}`;
    const first = await this.#measure(route, driven);
    const { answer } = first;
    if (!exceeds(first.cheapest, allowed)) return { answer };
    // The jobs that earlier requests have started use the same processor time.
    await this.#activeJobsEnd();
    const { cheapest } = await this.#measure(route, driven);
    if (!exceeds(cheapest, allowed)) return { answer };
    const clientCost = await this.#clientCost(route, driven);
    const withClient = {
      ...allowed,
      total: allowed.total + clientCost,
      process: allowed.process + clientCost,
    };
    if (!exceeds(cheapest, withClient)) return { answer };
    const rounded = (milliseconds: number) => `${Math.round(milliseconds)} ms`;
    const parts = [
      `${rounded(cheapest.total)} on the main thread`,
      `up to ${rounded(cheapest.longest)} in one turn`,
      `${rounded(clientCost)} to send the request`,
    ];
    const excess = `${name}, answered with ${answer}, cost ${rounded(cheapest.process)} of CPU: ${parts.join(', ')}`;
    return { answer, excess };
  }

  /**
   * Sends the request until its cost is within the limits, at most `attempts` times.
   * @returns the lowest cost and the first answer
   */
  async #measure(route: Route, driven: DrivenRequest) {
    let cheapest = { total: Infinity, longest: Infinity, process: Infinity };
    let answer = '';
    const { server, delegating } = this.#fixture;
    const { baseUrl } = this.#delegatedRoutes.includes(route) ? delegating : server;
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const send = await this.#prepare(route, driven, baseUrl);
      const measure = attempt === 1 ? costAsMeasured : threadCost;
      const cost = await measure(async () => {
        const received = await send();
        if (attempt === 1) answer = received;
      });
      cheapest = lowest(cheapest, cost);
      if (!exceeds(cheapest, allowed)) break;
    }
    return { cheapest, answer };
  }

  /** Resolves when no job of the server runs. */
  async #activeJobsEnd(): Promise<void> {
    const { administrator } = this.#fixture;
    await eventually('the end of all active jobs', async () => {
      const path = '/_synapse/admin/v1/scheduled_tasks?status=active';
      const { body } = await administrator.request('GET', path, undefined);
      return (body['scheduled_tasks'] as unknown[]).length === 0;
    });
  }

  /**
   * Returns the milliseconds of CPU that this process needs to send the request, measured with a server that answers at
   * once without reading it.
   */
  async #clientCost(route: Route, driven: DrivenRequest): Promise<number> {
    const idle = createServer((request, response) => {
      request.resume();
      request.on('end', () => response.end('{}'));
    });
    await once(idle.listen(0, '127.0.0.1'), 'listening');
    const send = await this.#prepare(
      route,
      driven,
      `http://127.0.0.1:${(idle.address() as AddressInfo).port}`,
    );
    let cheapest = Number.POSITIVE_INFINITY;
    for (let left = attempts; left > 0; left--)
      cheapest = Math.min(cheapest, (await threadCost(send)).process);
    idle.close();
    idle.closeAllConnections();
    return cheapest;
  }

  /** Returns a function that sends the request. A request of another server is signed at once. */
  async #prepare(
    { contract }: Route,
    { query, body: given, type = 'application/json', times = 1 }: DrivenRequest,
    baseUrl: string,
  ) {
    const body = given && contract.auth === 'server' ? canonical(given) : given;
    const { hostname, port } = new URL(baseUrl);
    const { method } = contract;
    const path = (await this.#pathOf(contract)) + (query === undefined ? '' : `?${query}`);
    const headers = {
      // The public name: single sign-on redirects browsers to it.
      host: 'a.test',
      authorization: this.#authorization(contract, path, body),
      ...(body && { 'content-type': type, 'content-length': body.length * times }),
    };
    return async (): Promise<string> => {
      // A redirect may repeat the whole query in a header.
      const sent = request({ hostname, port, method, path, headers, maxHeaderSize: 128 * 1024 });
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
      return readAnswer(answer);
    };
  }

  #authorization(contract: RouteContract, uri: string, body: Buffer | undefined): string {
    const { tokenOf, remoteServer } = this.#fixture;
    const { auth, method } = contract;
    if (auth !== 'server') return `Bearer ${tokenOf(contract)}`;
    const { name: origin, key } = remoteServer;
    return authorize({ method, uri, origin, destination: 'a.test', content: body?.toString() }, key);
  }

  /** Fills in the parameters of a path. */
  async #pathOf(contract: RouteContract): Promise<string> {
    const path = typeof contract.path === 'string' ? contract.path : contract.path[0]!;
    const parameters = { ...this.#fixture.pathParametersOf(contract) };
    if (contract.operationId === 'uploadContentToMXC')
      parameters['mediaId'] = await newMediaId(this.#fixture.user);
    if (['deleteRoom', 'scheduleRoomDeletion'].includes(contract.operationId ?? ''))
      parameters['roomId'] = await this.#fixture.user.createRoom();
    return toMatrixSpelling(
      path.replace(/:(\w+)|\*/g, (_, name = '*') => encodeURIComponent(parameters[name] ?? 'x')),
    );
  }
}

/** Returns a body as canonical JSON, which the signature of another server covers. */
const canonical = (body: Buffer) => Buffer.from(canonicalJson(JSON.parse(body.toString()) as JsonObject));

/** Returns the id of a media item whose content is yet to be uploaded. */
async function newMediaId(user: TestClient): Promise<string> {
  const { body, raw } = await user.request('POST', '/_matrix/media/v1/create', {});
  const id = /[^/]+$/.exec(String(body['content_uri']))?.[0];
  assert.ok(id, raw);
  return id;
}

/** Operations that end the session of the test's user, or the membership in the room. */
const endsSessionOrMembership: ReadonlySet<string> = new Set([
  'logout',
  'logout_all',
  'leaveRoom',
  'forgetRoom',
]);
