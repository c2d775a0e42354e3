import { isJsonObject, type JsonObject } from '../../protocol/index.ts';
import type { FederationClient } from '../requests/federation-client.ts';
import { type FederationRequest, federationPath } from '../requests/request.ts';

/** Bytes of an answer: an entry for each of 50 events. */
const maxBody = 1024 * 1024;

/** Characters of what another server says about an event that are kept. */
const maxErrorLength = 500;

/** Transactions, the way in which servers hand each other events and EDUs. */
export class TransactionsApi {
  readonly #client: Pick<FederationClient, 'request'>;

  constructor(client: Pick<FederationClient, 'request'>) {
    this.#client = client;
  }

  /**
   * Sends a transaction, again and again for some minutes. A server that has answered with success has it, whatever
   * the answer is.
   * Source: server-server API, "Transactions".
   * @param bodyText the transaction as canonical JSON
   * @returns what the server has not taken: event id to its reason
   * @throws as `FederationClient.request` does
   */
  async send(
    server: string,
    txnId: string,
    bodyText: string,
    request: Pick<FederationRequest, 'signal' | 'duringRetryDelay'> = {},
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
  const refused = new Map<string, string>();
  if (!isJsonObject(pdus)) return refused;
  for (const [eventId, outcome] of Object.entries(pdus)) {
    const error = isJsonObject(outcome) ? outcome.error : undefined;
    if (typeof error === 'string') refused.set(eventId, error.slice(0, maxErrorLength));
  }
  return refused;
}
