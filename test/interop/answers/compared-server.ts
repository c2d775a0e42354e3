import type { Homeserver } from '../interop-network.ts';
import { InteropUser } from '../interop-user.ts';
import type { ComparedRequest, RequestBody, Requester, Subject } from './compared-request.ts';
import type { SigningServer } from './signing-server.ts';

/** The response of a server. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Parsed JSON, or a description of another body. */
  readonly body: unknown;
}

/** Names of the users of every subject. */
export const users = ['anna', 'ben', 'cleo'] as const;

/** Timeout of a request in milliseconds. */
const requestTimeout = 30_000;
const jsonType = 'application/json';

/**
 * One of the two compared servers, with the users of a subject (a group of requests) and the values that were saved from its
 * responses.
 */
export class ComparedServer {
  readonly saved = new Map<string, string>();
  readonly server: Homeserver;
  readonly #signing: SigningServer;
  readonly #tokens = new Map<Requester, string>();

  private constructor(server: Homeserver, signing: SigningServer) {
    this.server = server;
    this.#signing = signing;
  }

  /**
   * Registers the users of a subject, and an administrator if one of its requests needs one. Their names begin with the
   * first word of the subject.
   */
  static async create(
    server: Homeserver,
    signing: SigningServer,
    { subject, requests }: Subject,
  ): Promise<ComparedServer> {
    const compared = new ComparedServer(server, signing);
    compared.saved.set('server', server.name).set('signing', signing.name);
    const [prefix] = subject.split(/\W/);
    for (const name of users) compared.#add(name, await InteropUser.register(server, `${prefix}-${name}`));
    if (requests.some(([requester]) => requester === 'admin'))
      compared.#add('admin', await InteropUser.registerAdmin(server, `${prefix}-admin`));
    return compared;
  }

  #add(name: Requester, { id, deviceId, token }: InteropUser): void {
    this.saved.set(name, id).set(`${name}-device`, deviceId).set(`${name}-token`, token);
    this.#tokens.set(name, token);
  }

  /** Sends a request, and saves the values of its response that the request names. */
  async send([requester, request, body, options = {}]: ComparedRequest): Promise<Answer> {
    const [method = '', ...rest] = request.split(' ');
    const path = this.#path(rest.join(' '));
    const content = options.bytes ?? this.#content(body);
    const answer =
      requester === 'server'
        ? await this.#signing.request(this.server.name, method, path, content as string | undefined)
        : await this.#sendAsUser(method, path, content, {
            token: options.token === undefined ? this.#tokens.get(requester) : this.fill(options.token),
            type: options.type ?? jsonType,
          });
    for (const [name, valuePath] of Object.entries(options.save ?? {})) {
      const valueToSave = valueAt(answer.body, valuePath);
      if (typeof valueToSave !== 'string' && typeof valueToSave !== 'number') continue;
      this.saved.set(name, String(valueToSave));
      const [, media] = /^mxc:\/\/(.+)$/.exec(String(valueToSave)) ?? [];
      if (media !== undefined) this.saved.set(`${name}-id`, media);
    }
    return answer;
  }

  /** Replaces all saved values. @param values by name */
  restore(values: ReadonlyMap<string, string>): void {
    this.saved.clear();
    for (const [name, value] of values) this.saved.set(name, value);
  }

  /** Replaces each `{name}` in a text by the saved value of that name. */
  fill(text: string, encode = (value: string) => value): string {
    return text.replace(/\{([a-z]\w*(?:-\w+)*)\}/g, (placeholder, name: string) => {
      const value = this.saved.get(name);
      return value === undefined ? placeholder : encode(value);
    });
  }

  #path(written: string): string {
    const encode = (value: string) => encodeURIComponent(value).replaceAll('%2F', '/');
    const path = this.fill(written, encode).replaceAll('#', '%23');
    return path.startsWith('/_') || path.startsWith('/.') ? path : `/_matrix/client/v3${path}`;
  }

  #content(body: RequestBody | undefined): string | undefined {
    if (body === undefined) return undefined;
    return this.fill(typeof body === 'string' ? body : JSON.stringify(body));
  }

  async #sendAsUser(
    method: string,
    path: string,
    content: string | Uint8Array<ArrayBuffer> | undefined,
    { token, type }: { readonly token: string | undefined; readonly type: string },
  ): Promise<Answer> {
    const response = await fetch(`${this.server.url}${path}`, {
      method,
      redirect: 'manual',
      signal: AbortSignal.timeout(requestTimeout),
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(content !== undefined && { 'content-type': type }),
      },
      ...(content !== undefined && { body: content }),
    });
    const bytes = Buffer.from(await response.arrayBuffer());
    return {
      status: response.status,
      headers: Object.fromEntries(response.headers),
      body: readBody(response.headers.get('content-type') ?? '', bytes),
    };
  }
}

/** Returns JSON parsed, and a description of any other body. @param type the content type of the response */
export function readBody(type: string, bytes: Buffer): unknown {
  if (!type.startsWith(jsonType)) return bytes.length === 0 ? 'no body' : `a body of type ${type}`;
  return JSON.parse(bytes.toString());
}

/** Returns the value at a path of the body. @param path fields and indices, separated by dots */
function valueAt(body: unknown, path: string): unknown {
  return path.split('.').reduce((value, key) => (value as Record<string, unknown> | undefined)?.[key], body);
}
