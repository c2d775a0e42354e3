import { isJsonObject, type JsonObject } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type FederationRequest, federationPath } from '../requests/request.ts';

/** Maximum bytes of a response: it contains an entry for each of 50 events. */
const maxBody = 1024 * 1024;

/** Maximum characters of an error message of another server; longer messages are cut off. */
const maxErrorLength = 500;

/** Sends transactions with PDUs and EDUs to other servers. */
export class TransactionsApi {
  readonly #client: Pick<FederationClient, 'request'>;

  constructor(client: Pick<FederationClient, 'request'>) {
    this.#client = client;
  }

  /**
   * Sends a transaction. A response with status 200 means that the server has received the transaction, whatever else
   * its JSON object says.
   * Source: server-server API, `PUT /_matrix/federation/v1/send/{txnId}`.
   * @param bodyText the transaction as canonical JSON
   * @param request `signal` aborts the request; `duringRetryDelay` is called for each delay before a retry; `retry` is
   * `long` by default
   * @returns rejected events: event id to the reason
   * @throws the errors of `FederationClient.request`
   */
  async send(
    server: string,
    txnId: string,
    bodyText: string,
    request: Pick<FederationRequest, 'signal' | 'duringRetryDelay' | 'retry'> = {},
  ): Promise<ReadonlyMap<string, string>> {
    const answer = await this.#client.request({
      destination: server,
      method: 'PUT',
      path: federationPath`/_proto/federation/v1/send/${txnId}`,
      bodyText,
      retry: 'long',
      maxBody,
      ...request,
    });
    return rejectedPdus(answer);
  }
}

function rejectedPdus({ pdus }: JsonObject): ReadonlyMap<string, string> {
  const rejections = new Map<string, string>();
  if (!isJsonObject(pdus)) return rejections;
  for (const [eventId, outcome] of Object.entries(pdus)) {
    const error = isJsonObject(outcome) ? outcome.error : undefined;
    if (typeof error === 'string') rejections.set(eventId, error.slice(0, maxErrorLength));
  }
  return rejections;
}
