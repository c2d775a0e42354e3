import type { Appservice } from '../../appservice-registry/index.ts';
import type { FetchedResponse, OutboundHttp } from '../../kernel/outbound/index.ts';
import { isJsonObject, type JsonValue } from '../../protocol/index.ts';
import { type Spelling, spell, spellingsToTry } from './paths.ts';

/** A request to a service. */
export interface ServiceRequest {
  readonly method: 'GET' | 'PUT' | 'POST';
  /** Path and query below `/_proto`, the prefix that the code writes for `/_matrix`. */
  readonly path: string;
  /** The body as JSON. */
  readonly body?: string;
  /** Maximum time until the response is complete, in milliseconds. */
  readonly timeout: number;
  readonly signal?: AbortSignal | undefined;
}

/** The response of a service. */
export interface ServiceAnswer {
  readonly status: number;
  readonly text: string;
  /** The body; `undefined` when it is not JSON. */
  readonly json: JsonValue | undefined;
}

/** The error of a request to a service that receives no requests, because it has no URL (`url: null`). */
export class NoUrl extends Error {}

export interface ServiceClientDeps {
  /** Absent where no application service is registered. */
  readonly http: Pick<OutboundHttp, 'fetch'> | undefined;
  /**
   * The spelling of paths (`/_matrix` or `/_proto`, for instance) that each service knows, by the id of the service;
   * updated when a request succeeds with another spelling.
   */
  readonly spellings: Map<string, Spelling>;
  /** Called to store the spelling of paths that a service knows. */
  readonly onSpelling: (serviceId: string, spelling: Spelling) => void;
  /** Whether the token is sent in the query as well (`use_appservice_legacy_authorization`). */
  readonly sendsTokenInQuery: boolean;
}

/** Maximum bytes of a response. */
const maxBody = 4 * 1024 * 1024;

/** Sends requests to application services, and learns which spelling of paths each of them knows. */
export class ServiceClient {
  readonly #deps: ServiceClientDeps;

  constructor(deps: ServiceClientDeps) {
    this.#deps = deps;
  }

  /**
   * Sends a request with one spelling of its path after the other, until the service knows the path.
   * @returns the first response when the service knows no spelling
   * @throws OutboundError when no complete response arrives; NoUrl
   */
  async send(service: Appservice, request: ServiceRequest): Promise<ServiceAnswer> {
    const { spellings, onSpelling } = this.#deps;
    const lastSpelling = spellings.get(service.id);
    let firstAnswer: ServiceAnswer | undefined;
    for (const spelling of spellingsToTry(lastSpelling)) {
      const answer = await this.#attempt(service, request, spelling);
      if (!isUnrecognized(answer)) {
        if (lastSpelling !== spelling && answer.status < 300) {
          spellings.set(service.id, spelling);
          onSpelling(service.id, spelling);
        }
        return answer;
      }
      firstAnswer ??= answer;
    }
    return firstAnswer!;
  }

  async #attempt(
    { registration, id }: Appservice,
    { method, path, body, timeout, signal }: ServiceRequest,
    spelling: Spelling,
  ): Promise<ServiceAnswer> {
    const { http } = this.#deps;
    if (registration.url === undefined || !http)
      throw new NoUrl(`The application service '${id}' has no URL`);
    const url = new URL(registration.url + spell(path, spelling));
    if (this.#deps.sendsTokenInQuery) url.searchParams.set('access_token', registration.hsToken);
    const response = await http.fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${registration.hsToken}`,
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      timeout,
      maxBody,
      signal,
    });
    return answerOf(response);
  }
}

function answerOf({ status, body }: FetchedResponse): ServiceAnswer {
  const text = body.toString();
  try {
    return { status, text, json: JSON.parse(text) as JsonValue };
  } catch {
    return { status, text, json: undefined };
  }
}

/** Reports whether the service does not know the path: M_UNRECOGNIZED, or a 404 or 405 that is not a Matrix error. */
function isUnrecognized({ status, json }: ServiceAnswer): boolean {
  if (status !== 404 && status !== 405) return false;
  const errcode = isJsonObject(json) ? json['errcode'] : undefined;
  return typeof errcode !== 'string' || errcode === 'M_UNRECOGNIZED';
}
