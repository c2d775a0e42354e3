import { Appservice } from './appservice.ts';
import type { Registration } from './registrations/registration.ts';

/** The application services of this server. */
export class AppserviceRegistry {
  readonly services: readonly Appservice[];
  /** By `as_token`. */
  readonly #byToken: ReadonlyMap<string, Appservice>;

  constructor(registrations: readonly Registration[], serverName: string) {
    this.services = registrations.map((registration) => new Appservice(registration, serverName));
    this.#byToken = new Map(this.services.map((service) => [service.registration.asToken, service]));
  }

  get isEmpty(): boolean {
    return this.services.length === 0;
  }

  /** Returns the service with this `as_token`. */
  byToken(token: string): Appservice | undefined {
    return this.#byToken.get(token);
  }

  byId(id: string): Appservice | undefined {
    return this.services.find((service) => service.id === id);
  }

  /** Returns the service with this sender. */
  bySender(userId: string): Appservice | undefined {
    return this.services.find(({ sender }) => sender === userId);
  }

  /**
   * Whether a user id may not be registered: because a service other than `appservice` reserves it, or because
   * `appservice` may not act as this user.
   * @param appservice id of the service that creates the user; `undefined` when none does
   */
  isUserReservedFrom(userId: string, appservice: string | undefined): boolean {
    const creator = appservice === undefined ? undefined : this.byId(appservice);
    if (creator && !creator.mayActAs(userId)) return true;
    return this.services.some((service) => service !== creator && service.ownsUser(userId));
  }

  /**
   * Whether a user or service may not create or delete an alias: an exclusive namespace of another service contains it,
   * or the service's own namespaces do not contain it. The sender of a service counts as the service.
   */
  isAliasReservedFrom(alias: string, user: { userId: string; appservice?: string | undefined }): boolean {
    const { userId, appservice } = user;
    const creator = appservice === undefined ? this.bySender(userId) : this.byId(appservice);
    if (creator && !creator.aliases.has(alias)) return true;
    return this.services.some((service) => service !== creator && service.aliases.hasExclusively(alias));
  }
}
