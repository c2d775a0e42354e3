import { serverOfUser } from '../protocol/index.ts';
import { NamespaceSet } from './namespace-set.ts';
import type { Registration } from './registrations/registration.ts';

/** A registered application service. */
export class Appservice {
  readonly id: string;
  readonly registration: Registration;
  /** The user id of the sender. The service acts as this user by default. */
  readonly sender: string;
  readonly aliases: NamespaceSet;
  readonly rooms: NamespaceSet;
  readonly users: NamespaceSet;
  readonly #serverName: string;

  constructor(registration: Registration, serverName: string) {
    this.id = registration.id;
    this.registration = registration;
    this.sender = `@${registration.senderLocalpart}:${serverName}`;
    this.users = new NamespaceSet(registration.users);
    this.aliases = new NamespaceSet(registration.aliases);
    this.rooms = new NamespaceSet(registration.rooms);
    this.#serverName = serverName;
  }

  /** Whether the service may act as a user: as its sender, or as a local user in one of its namespaces. */
  mayActAs(userId: string): boolean {
    return userId === this.sender || (serverOfUser(userId) === this.#serverName && this.users.has(userId));
  }

  /** Whether only this service may create the user. */
  ownsUser(userId: string): boolean {
    return userId === this.sender || this.users.hasExclusively(userId);
  }
}
