import { randomUUID } from 'node:crypto';
import { type LoopbackServer, serveOnLoopback } from '../../../test/support/network/loopback.ts';

/** A user of the CAS server. */
export interface CasAccount {
  readonly name: string;
  readonly attributes?: Readonly<Record<string, readonly string[]>>;
}

/**
 * A server that speaks versions 1, 2 and 3 of the CAS protocol: logs the user in at once, and issues tickets that are valid
 * once and for one service URL.
 */
export class CasServer {
  /** The user who logs in next. */
  user: CasAccount = { name: 'nobody' };
  /** Paths of the requests that validated tickets. */
  readonly validations: string[] = [];
  /** Replaces the response to a validation. */
  response: string | undefined;
  /** Whether the user enters the password when a service asks for it with `renew`. */
  asksAgain = true;
  readonly #tickets = new Map<
    string,
    { readonly service: string; readonly user: CasAccount; readonly isFresh: boolean }
  >();
  readonly #server: LoopbackServer;

  private constructor(server: LoopbackServer) {
    this.#server = server;
  }

  static async start(): Promise<CasServer> {
    let self: CasServer | undefined;
    const server = await serveOnLoopback((request, response) => {
      const url = new URL(request.url ?? '/', 'http://cas');
      const service = url.searchParams.get('service') ?? '';
      if (url.pathname === '/cas/login') {
        const target = new URL(service);
        const isForced = url.searchParams.get('renew') === 'true';
        target.searchParams.set('ticket', self!.issue(service, isForced && self!.asksAgain));
        response.writeHead(302, { location: target.href }).end();
        return;
      }
      self!.validations.push(url.pathname);
      response.end(self!.response ?? self!.#validate(url, service));
    });
    self = new CasServer(server);
    return self;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}/cas`;
  }

  /** Issues a ticket for the user. @param isFresh whether the user has entered the password for it */
  issue(service: string, isFresh = false): string {
    const ticket = `ST-${randomUUID()}`;
    this.#tickets.set(ticket, { service, user: this.user, isFresh });
    return ticket;
  }

  stop(): Promise<void> {
    return this.#server.close();
  }

  #validate({ pathname: path, searchParams }: URL, service: string): string {
    const ticket = searchParams.get('ticket') ?? '';
    const found = this.#tickets.get(ticket);
    this.#tickets.delete(ticket);
    const isFreshEnough = found?.isFresh || searchParams.get('renew') === null;
    const user = found?.service === service && isFreshEnough ? found.user : undefined;
    if (path === '/cas/validate') return user ? `yes\n${user.name}\n` : 'no\n\n';
    const content = user
      ? `<cas:authenticationSuccess><cas:user>${user.name}</cas:user>${attributesOf(path, user)}</cas:authenticationSuccess>`
      : '<cas:authenticationFailure code="INVALID_TICKET">not recognized</cas:authenticationFailure>';
    return `<cas:serviceResponse xmlns:cas="http://www.yale.edu/tp/cas">\n ${content}\n</cas:serviceResponse>`;
  }
}

function attributesOf(path: string, { attributes = {} }: CasAccount): string {
  if (!path.startsWith('/cas/p3/')) return '';
  const lines = Object.entries(attributes).flatMap(([name, values]) =>
    values.map((value) => `<cas:${name}>${value}</cas:${name}>`),
  );
  return `<cas:attributes>${lines.join('')}</cas:attributes>`;
}
