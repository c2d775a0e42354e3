/** Requests to the admin API of the server that this page comes from, and to its client API to sign in and out. */

/**
 * Whether the page was opened below `/_synapse`. Requests use the same spelling of paths as the page's own address, because
 * a reverse proxy may forward only one spelling.
 */
const usesSynapsePaths = globalThis.location?.pathname.startsWith('/_synapse/') ?? false;

export const adminPath = usesSynapsePaths ? '/_synapse/admin' : '/_server/admin';
export const clientPath = usesSynapsePaths ? '/_matrix/client' : '/_proto/client';

/** Query parameters. Parameters that are `undefined` or empty are left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

export interface RequestOptions {
  readonly query?: Query;
  readonly body?: unknown;
  readonly token?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** An error response of the server, or a request without a response. */
export class ApiError extends Error {
  /** 0 without a response. */
  readonly status: number;
  /** The specification's error code; empty without a response. */
  readonly errcode: string;

  constructor(status: number, errcode: string, message: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.errcode = errcode;
  }
}

/** Template tag for paths. Percent-encodes the inserted values. */
export const path = (texts: TemplateStringsArray, ...values: readonly string[]): string =>
  texts.reduce((made, text, index) => `${made}${encodeURIComponent(values[index - 1] ?? '')}${text}`);

/**
 * Sends a request.
 * @returns a response with a success status
 * @throws ApiError for other statuses, and without a response; when `signal` is aborted, the reason
 */
export async function send(
  method: Method,
  target: string,
  { query = {}, body, token, signal }: RequestOptions = {},
): Promise<Response> {
  const parameters = Object.entries(query).filter(([, value]) => value !== undefined && value !== '');
  const search = new URLSearchParams(parameters.map(([name, value]) => [name, String(value)])).toString();
  let response: Response;
  try {
    response = await fetch(search === '' ? target : `${target}?${search}`, {
      method,
      cache: 'no-store',
      credentials: 'omit',
      headers: {
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(0, '', 'The server cannot be reached.');
  }
  if (response.ok) return response;
  const answer: unknown = await response.json().catch(() => ({}));
  const { errcode, error } = answer as { readonly errcode?: string; readonly error?: string };
  throw new ApiError(
    response.status,
    errcode ?? '',
    error ?? `The server responded with status ${response.status}.`,
  );
}

/** Sends requests with the access token of the signed-in administrator. */
export class Api {
  readonly #token: string;
  readonly #signedOut: () => void;

  /** @param signedOut called when the server answers 401: it does not accept the token any more */
  constructor(token: string, signedOut: () => void) {
    this.#token = token;
    this.#signedOut = signedOut;
  }

  /** Sends a request to the admin API. @param target path below the path of the admin API @throws ApiError */
  async admin<Answer>(method: Method, target: string, options: RequestOptions = {}): Promise<Answer> {
    return (await (await this.#send(method, target, options)).json()) as Answer;
  }

  /** Reads a file from the admin API. @param target path below the path of the admin API @throws ApiError */
  async file(target: string, options: RequestOptions = {}): Promise<Blob> {
    return (await this.#send('GET', target, options)).blob();
  }

  async #send(method: Method, target: string, options: RequestOptions): Promise<Response> {
    try {
      return await send(method, adminPath + target, { ...options, token: this.#token });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) this.#signedOut();
      throw error;
    }
  }
}
