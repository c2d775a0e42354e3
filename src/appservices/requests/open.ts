import type { AppserviceRegistry } from '../../appservice-registry/index.ts';
import type { Database } from '../../kernel/database/index.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import type { OutboundHttp } from '../../kernel/outbound/index.ts';
import { readQueues, writeSpelling } from '../store.ts';
import type { AppserviceTables } from '../tables.ts';
import { isSpelling, type Spelling } from './paths.ts';
import { Queries } from './queries.ts';
import { ServiceClient } from './service-client.ts';

export interface ServiceRequestsDeps {
  readonly registry: AppserviceRegistry;
  readonly database: Database;
  /** Reaches all addresses, because operators choose the URLs of services; absent where no application service is registered. */
  readonly http: Pick<OutboundHttp, 'fetch'> | undefined;
  readonly log: Logger;
  readonly options: { readonly use_appservice_legacy_authorization: boolean };
}

/** The requests to services that other slices use. */
export interface ServiceRequests {
  readonly client: ServiceClient;
  readonly queries: Queries;
}

/**
 * Opens requests to services. Must be called before rooms are opened, because rooms look up aliases by these requests.
 */
export async function openServiceRequests(deps: ServiceRequestsDeps): Promise<ServiceRequests> {
  const { registry, database, http, log, options } = deps;
  const rows = registry.isEmpty ? [] : await readQueues(database.reader<AppserviceTables>());
  const spellings = new Map<string, Spelling>();
  for (const { service_id, spelling } of rows) if (isSpelling(spelling)) spellings.set(service_id, spelling);
  const storeSpelling = (serviceId: string, spelling: Spelling) =>
    database.transaction<AppserviceTables, void>((writer) => writeSpelling(writer, serviceId, spelling));
  const client = new ServiceClient({
    http,
    spellings,
    onSpelling: (serviceId, spelling) =>
      void storeSpelling(serviceId, spelling).catch((error: unknown) =>
        log.warn(
          { err: error, service: serviceId },
          'The path prefix of an application service could not be stored',
        ),
      ),
    sendsTokenInQuery: options.use_appservice_legacy_authorization,
  });
  return { client, queries: new Queries({ services: registry.services, client, log }) };
}
