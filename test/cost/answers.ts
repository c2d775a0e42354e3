import type { IncomingMessage } from 'node:http';
import { text } from 'node:stream/consumers';
import { refusingRoutes } from './refusing-routes.ts';

/**
 * Reads a response.
 * @returns the status, and for errors the error code: `errcode`, `error` of OAuth 2.0, `flows` of interactive
 * authentication, or `page`
 */
export async function readAnswer(response: IncomingMessage): Promise<string> {
  const body = await text(response);
  const { statusCode: status = 0, headers } = response;
  if (status < 400) return String(status);
  const type = headers['content-type'] ?? 'nothing';
  if (!type.startsWith('application/json'))
    return `${status} ${type.startsWith('text/html') ? 'page' : type}`;
  const { errcode, error, flows } = JSON.parse(body) as Record<string, unknown>;
  return `${status} ${String(errcode ?? (flows === undefined ? error : 'flows'))}`;
}

/** Answers to requests that are larger than a route accepts, or whose long values a route does not accept. */
const answersToLargeRequests: ReadonlySet<string> = new Set([
  '400 M_BAD_JSON',
  '400 M_INVALID_PARAM',
  '413 M_TOO_LARGE',
  '400 page',
]);

/** Whether the server has carried out the request. */
const isAccepted = (answer: string) => /^[23]\d\d$/.test(answer);

/**
 * Whether the answer does not depend on the content of the request: an invalid token, an unknown path, a rate limit, or
 * a failure of the server. Status 502 is not among them, because it reports a failure of another server.
 */
const ignoresContent = (answer: string) =>
  /^401 M_(\w+_TOKEN|UNAUTHORIZED)$|M_UNRECOGNIZED$|M_LIMIT_EXCEEDED$|^50[^2]/.test(answer);

/** The answers to the requests of one test. */
export class Answers {
  readonly #byRoute = new Map<string, Map<string, string>>();

  /** @param what describes the request */
  add(routeName: string, what: string, answer: string): void {
    const answers = this.#byRoute.get(routeName) ?? new Map<string, string>();
    this.#byRoute.set(routeName, answers.set(what, answer));
  }

  /** Number of routes that have answered. */
  get routeCount(): number {
    return this.#byRoute.size;
  }

  /**
   * Returns a description of each unexpected answer. Of the requests to a route, at least one must be accepted; the others
   * may be refused because of their content. The list of refusing routes has the exceptions.
   */
  unexpected(): string[] {
    return this.#describe((routeName, answers) => {
      const listed = refusingRoutes.find(({ route }) => route.test(routeName));
      if (listed !== undefined)
        return (answer) => answersToLargeRequests.has(answer) || listed.answers.includes(answer);
      return answers.some(isAccepted) ? (answer) => !ignoresContent(answer) : () => false;
    });
  }

  /** Returns a description of each answer that does not say that a body is too large or has too many entries. */
  notRefusedAsTooLarge(): string[] {
    return this.#describe(() => (answer) => ['400 M_BAD_JSON', '413 M_TOO_LARGE'].includes(answer));
  }

  /** Describes the answers that `expectation` does not expect. */
  #describe(
    expectation: (routeName: string, answers: readonly string[]) => (answer: string) => boolean,
  ): string[] {
    return [...this.#byRoute].flatMap(([routeName, answers]) => {
      const isExpected = expectation(routeName, [...answers.values()]);
      return [...answers]
        .filter(([, answer]) => !isExpected(answer))
        .map(([what, answer]) => `${routeName} with ${what}: ${answer}`);
    });
  }
}
