import {
  type FetchedResponse,
  OutboundError,
  type OutboundHttp,
  type OutboundRequest,
} from '../kernel/outbound/index.ts';

/** Clients for requests to identity providers. */
export interface OperatorRequests {
  /** Sends requests to all addresses; for URLs of the configuration. */
  readonly http: Pick<OutboundHttp, 'fetch'>;
  /** Sends requests to allowed addresses only; for all other URLs. */
  readonly guardedHttp: Pick<OutboundHttp, 'fetch'>;
}

/**
 * Fetches a URL of the configuration, which may be at a private address. Redirects from a public address must not lead
 * to private addresses; redirects from a private address must stay on the same host.
 * @param onPrivate is called when the address is private
 * @throws OutboundError
 */
export async function fetchConfigured(
  { http, guardedHttp }: OperatorRequests,
  url: URL,
  request: OutboundRequest,
  onPrivate: () => void = () => undefined,
): Promise<FetchedResponse> {
  try {
    return await guardedHttp.fetch(url, request);
  } catch (error) {
    if (!(error instanceof OutboundError) || error.failure !== 'refused-address') throw error;
  }
  const response = await http.fetch(url, { ...request, mayFollow: (to) => to.host === url.host });
  onPrivate();
  return response;
}
