import type { Appservice } from '../../appservice-registry/index.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { ServiceClient } from './service-client.ts';

export interface QueriesDeps {
  readonly services: readonly Appservice[];
  readonly client: ServiceClient;
  readonly log: Logger;
}

/** Milliseconds for which a client's request waits for the response of a service. */
const timeout = 10_000;

/**
 * Queries services for users and aliases that are in their namespaces and do not exist. A service that knows the user or
 * alias creates it before the service answers.
 * Source: application service API, "Querying".
 */
export class Queries {
  readonly #deps: QueriesDeps;
  /** Running queries by their path, so that concurrent requests share a query. */
  readonly #running = new LoadOnce<string, boolean>();

  constructor(deps: QueriesDeps) {
    this.#deps = deps;
  }

  /** Queries services for an alias. @returns whether a service has created the room of the alias */
  aliasExists(alias: string): Promise<boolean> {
    return this.#query(`rooms/${encodeURIComponent(alias)}`, ({ aliases }) => aliases.has(alias));
  }

  /** Queries services for a user. @returns whether a service has created the user */
  userExists(userId: string): Promise<boolean> {
    return this.#query(`users/${encodeURIComponent(userId)}`, (service) => service.mayActAs(userId));
  }

  #query(path: string, isInterested: (service: Appservice) => boolean): Promise<boolean> {
    const interestedServices = this.#deps.services.filter(
      (service) => service.registration.url !== undefined && isInterested(service),
    );
    if (interestedServices.length === 0) return Promise.resolve(false);
    return this.#running.run(path, async () => {
      for (const service of interestedServices) if (await this.#exists(service, path)) return true;
      return false;
    });
  }

  async #exists(service: Appservice, path: string): Promise<boolean> {
    const { client, log } = this.#deps;
    try {
      const request = { method: 'GET', path: `/_proto/app/v1/${path}`, timeout } as const;
      return (await client.send(service, request)).status === 200;
    } catch (error) {
      log.warn({ err: error, service: service.id, path }, 'The application service did not answer a query');
      return false;
    }
  }
}
