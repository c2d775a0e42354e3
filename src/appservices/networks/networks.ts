import type { Appservice } from '../../appservice-registry/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import { LoadOnce } from '../../kernel/load-once.ts';
import type { Logger } from '../../kernel/observability/index.ts';
import { isJsonObject, type JsonObject, type JsonValue, notFound } from '../../protocol/index.ts';
import type { ServiceClient } from '../requests/service-client.ts';

export interface NetworksDeps {
  readonly services: readonly Appservice[];
  readonly client: ServiceClient;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Milliseconds for which a client's request waits for the responses of services. */
const timeout = 10_000;

/** Milliseconds for which the description of a protocol is cached. */
const cachedFor = 3_600_000;

/** Milliseconds for which the lack of a description is cached. */
const missingFor = 30_000;

/** Maximum number of users or locations in a response. */
const maxResults = 1_000;

type Kind = 'user' | 'location';

/** The member of a search result that identifies the user or the location. */
const idMember: Readonly<Record<Kind, string>> = { user: 'userid', location: 'alias' };

/** Third-party networks that application services bridge. Source: client-server API, "Third-party networks". */
export class Networks {
  readonly #deps: NetworksDeps;
  /** Descriptions by protocol, each until a time of the monotonic clock. */
  readonly #descriptions = new Map<
    string,
    { readonly protocol: JsonObject | undefined; readonly until: number }
  >();
  readonly #describing = new LoadOnce<string, JsonObject | undefined>();

  constructor(deps: NetworksDeps) {
    this.#deps = deps;
  }

  /** Returns the protocols of all services by name; protocols that no service describes are absent. */
  async protocols(): Promise<JsonObject> {
    const names = new Set(this.#deps.services.flatMap(({ registration }) => registration.protocols));
    const described = await Promise.all(
      Array.from(names, async (name) => [name, await this.#describe(name)] as const),
    );
    return Object.fromEntries(described.flatMap(([name, protocol]) => (protocol ? [[name, protocol]] : [])));
  }

  /** Returns the description of a protocol. @throws MatrixError M_NOT_FOUND when no service describes it */
  async protocol(name: string): Promise<JsonObject> {
    const protocol = await this.#describe(name);
    if (!protocol) throw notFound('No application service describes this protocol');
    return protocol;
  }

  /**
   * Searches a network.
   * @param query the fields to search for, as the query of a URL
   * @throws MatrixError M_NOT_FOUND for an unknown protocol
   */
  async search(kind: Kind, protocol: string, query: string): Promise<JsonObject[]> {
    const services = this.#servicesOf(protocol);
    if (services.length === 0) throw notFound('Unknown protocol');
    return this.#find(kind, services, `${kind}/${encodeURIComponent(protocol)}`, query);
  }

  /** Returns the users or locations of networks that a Matrix user id or an alias represents. */
  async reverse(kind: Kind, id: string): Promise<JsonObject[]> {
    const services = this.#deps.services.filter((service) =>
      kind === 'user' ? service.mayActAs(id) : service.aliases.has(id),
    );
    return this.#find(kind, services, kind, `${idMember[kind]}=${encodeURIComponent(id)}`);
  }

  #servicesOf(protocol: string): Appservice[] {
    return this.#deps.services.filter(({ registration }) => registration.protocols.includes(protocol));
  }

  /** Sends a query to services, and returns the complete users or locations in their answers. */
  async #find(
    kind: Kind,
    services: readonly Appservice[],
    path: string,
    query: string,
  ): Promise<JsonObject[]> {
    const pathWithQuery = query === '' ? path : `${path}?${query}`;
    const answers = await Promise.all(services.map((service) => this.#get(service, pathWithQuery)));
    const isComplete = (entry: JsonValue): entry is JsonObject =>
      isJsonObject(entry) &&
      typeof entry[idMember[kind]] === 'string' &&
      typeof entry['protocol'] === 'string' &&
      isJsonObject(entry['fields']);
    return answers
      .flatMap((answer) => (Array.isArray(answer) ? answer.filter(isComplete) : []))
      .slice(0, maxResults);
  }

  /** Returns the description of a protocol with the instances of all services; `undefined` when no service describes it. */
  async #describe(name: string): Promise<JsonObject | undefined> {
    // Clients may request any name, so names that no service has registered are not cached.
    if (this.#servicesOf(name).length === 0) return undefined;
    const { clock } = this.#deps;
    const cached = this.#descriptions.get(name);
    if (cached && cached.until > clock.monotonic()) return cached.protocol;
    return this.#describing.run(name, async () => {
      const protocol = await this.#requestDescription(name);
      const age = protocol === undefined ? missingFor : cachedFor;
      this.#descriptions.set(name, { protocol, until: clock.monotonic() + age });
      return protocol;
    });
  }

  /** Asks all services of a protocol for its description. Returns the first one with the instances of all. */
  async #requestDescription(name: string): Promise<JsonObject | undefined> {
    const answers = await Promise.all(
      this.#servicesOf(name).map(async (service) => {
        const answer = await this.#get(service, `protocol/${encodeURIComponent(name)}`);
        return answer !== undefined && isJsonObject(answer) ? withInstanceIds(answer, service.id) : undefined;
      }),
    );
    const [firstAnswer, ...otherAnswers] = answers.filter((answer) => answer !== undefined);
    if (!firstAnswer) return undefined;
    const instances = [firstAnswer, ...otherAnswers].flatMap((answer) => answer.instances);
    return { ...firstAnswer, instances };
  }

  async #get(service: Appservice, path: string): Promise<JsonValue | undefined> {
    if (service.registration.url === undefined) return undefined;
    const { client, log } = this.#deps;
    try {
      const request = { method: 'GET', path: `/_proto/app/v1/thirdparty/${path}`, timeout } as const;
      const { status, json } = await client.send(service, request);
      return status === 200 ? json : undefined;
    } catch (error) {
      log.warn({ err: error, service: service.id, path }, 'The application service did not answer a query');
      return undefined;
    }
  }
}

/**
 * Adds an id to each instance of a protocol. Clients request the room list of the instance by this id
 * (`third_party_instance_id`).
 */
function withInstanceIds(protocol: JsonObject, serviceId: string): JsonObject & { instances: JsonObject[] } {
  const { instances: sentInstances, ...rest } = protocol;
  const instances = Array.isArray(sentInstances) ? sentInstances.filter(isJsonObject) : [];
  return {
    user_fields: [],
    location_fields: [],
    icon: '',
    field_types: {},
    ...rest,
    instances: instances.map((instance) => ({
      fields: {},
      ...instance,
      instance_id: `${serviceId}|${String(instance['network_id'] ?? '')}`,
    })),
  };
}
