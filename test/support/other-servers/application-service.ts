import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serveOnLoopback } from '../network/loopback.ts';

/** A request that a service has received. */
export interface ServiceRequest {
  readonly method: string;
  /** Path and query as sent. */
  readonly url: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly authorization: string | undefined;
  // `any`, because tests read bodies of many shapes and compare their fields with expected values.
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly body: any;
}

export interface ServiceResponse {
  readonly status: number;
  readonly body: unknown;
}

export type Respond = (
  request: ServiceRequest,
) => ServiceResponse | undefined | Promise<ServiceResponse | undefined>;

/** Fields of a registration file that replace the fields of `registrationOf`. */
export type RegistrationFields = Readonly<Record<string, unknown>>;

/** A real application service: an HTTP server that records requests, and its registration file. */
export class ApplicationService {
  readonly id: string;
  /** In the order of arrival. */
  readonly requests: ServiceRequest[] = [];
  /** Returns the response to a request; where it returns undefined, the response is 200 with `{}`. */
  respond: Respond = () => undefined;
  readonly url: string;
  /** Path of the registration file. */
  readonly file: string;
  readonly #close: () => Promise<void>;
  readonly #waiting = new Set<() => void>();

  private constructor(id: string, folder: string, port: number, close: () => Promise<void>) {
    this.id = id;
    this.url = `http://127.0.0.1:${port}`;
    this.file = join(folder, `${id}.yaml`);
    this.#close = async () => {
      await close();
      rmSync(folder, { recursive: true, force: true });
    };
  }

  /** Starts a service for users `@{id}_…`, aliases `#{id}_…` and no rooms. */
  static async start(id: string, fields: RegistrationFields = {}): Promise<ApplicationService> {
    let service: ApplicationService | undefined;
    const served = await serveOnLoopback((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', async () => {
        const answer = await service!.#answer(request, Buffer.concat(chunks).toString());
        response.writeHead(answer.status, { 'content-type': 'application/json' });
        response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
      });
    });
    const folder = mkdtempSync(join(tmpdir(), 'hearth-appservice-'));
    service = new ApplicationService(id, folder, served.port, () => served.close());
    service.register(fields);
    return service;
  }

  /** Writes the registration file. */
  register(fields: RegistrationFields): void {
    const registration = { ...registrationOf(this.id, this.url), ...fields };
    writeFileSync(this.file, JSON.stringify(registration));
  }

  get token(): string {
    return `as token of ${this.id}`.replaceAll(' ', '-');
  }

  get hsToken(): string {
    return `hs token of ${this.id}`.replaceAll(' ', '-');
  }

  /** Received transactions, also those that were not accepted. */
  get transactions(): ServiceRequest[] {
    return this.requests.filter(({ method, path }) => method === 'PUT' && path.includes('/transactions/'));
  }

  /** Events of all transactions, without repeated transactions. */
  // biome-ignore lint/suspicious/noExplicitAny: see `ServiceRequest`
  get events(): any[] {
    const byId = new Map(this.transactions.map((transaction) => [transaction.path, transaction]));
    return [...byId.values()].flatMap(({ body }) => body.events);
  }

  /** Waits until the condition holds. Checks it after each request. */
  async until(condition: (service: ApplicationService) => boolean): Promise<void> {
    while (!condition(this)) {
      const arrived = Promise.withResolvers<void>();
      this.#waiting.add(arrived.resolve);
      await arrived.promise;
      this.#waiting.delete(arrived.resolve);
    }
  }

  stop(): Promise<void> {
    return this.#close();
  }

  async #answer(request: IncomingMessage, text: string): Promise<ServiceResponse> {
    const url = new URL(request.url!, this.url);
    const received = {
      method: request.method!,
      url: request.url!,
      path: url.pathname,
      query: url.searchParams,
      authorization: request.headers.authorization,
      body: text === '' ? undefined : JSON.parse(text),
    };
    this.requests.push(received);
    for (const wake of this.#waiting) wake();
    return (await this.respond(received)) ?? { status: 200, body: {} };
  }
}

const registrationOf = (id: string, url: string) => ({
  id,
  url,
  as_token: `as-token-of-${id}`,
  hs_token: `hs-token-of-${id}`,
  sender_localpart: `${id}bot`,
  rate_limited: false,
  namespaces: {
    users: [{ regex: `@${id}_.*`, exclusive: true }],
    aliases: [{ regex: `#${id}_.*`, exclusive: true }],
    rooms: [],
  },
});
