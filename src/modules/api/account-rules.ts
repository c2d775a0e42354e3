import type { JsonObject } from '../../protocol/index.ts';
import type { Decision } from './decision.ts';

/** A registration whose stages are completed, before its user id is known. */
export interface RegistrationRequest {
  /** The user name that the client requests. */
  readonly username: string | undefined;
  /**
   * The result of each completed stage of the authentication, by its type: `true`, or for instance a mail
   * address.
   */
  readonly stages: JsonObject;
}

/** Rules for accounts of this server. */
export interface AccountRules {
  /**
   * Decides whether an account has expired. Requests of an expired account are answered with 403
   * ORG_MATRIX_EXPIRED_ACCOUNT, except for logouts. Of several modules, the first one that returns `true` or `false`
   * decides. The function is called for each request, so it should answer from memory. An error counts as `undefined`.
   */
  isExpired?(userId: string): boolean | undefined | Promise<boolean | undefined>;
  /** Checks whether an account may be deactivated. An error rejects the request. */
  mayDeactivate?(userId: string, byAdmin: boolean): Decision | Promise<Decision>;
  /**
   * Checks whether an account may have a mail address or phone number. An error rejects the request.
   * @param isRegistration whether the account is being registered
   */
  mayUseAddress?(medium: string, address: string, isRegistration: boolean): Decision | Promise<Decision>;
  /**
   * Chooses the user name of a new account. Of several modules, the first one that returns a name decides. An error
   * rejects the registration, because otherwise the account would permanently have another name.
   * @returns the part of the user id before the colon
   */
  usernameFor?(registration: RegistrationRequest): string | undefined | Promise<string | undefined>;
  /**
   * Chooses the display name of a new account. Of several modules, the first one that returns a name decides. An error
   * counts as `undefined`.
   */
  displayNameFor?(registration: RegistrationRequest): string | undefined | Promise<string | undefined>;
}

type Done = void | Promise<void>;

/**
 * Receives changes of accounts of this server, after they are stored. The server does not wait for the answers. A failure is
 * logged and changes nothing. A change that was not passed on before the server stopped is not passed on after the next start.
 */
export interface AccountObserver {
  /** @param isGuest whether it is the account of a guest */
  onRegistration?(userId: string, isGuest: boolean): Done;
  /** @param type the login type, for instance `m.login.password` */
  onLogin?(userId: string, deviceId: string, type: string): Done;
  /** Receives each device whose session has ended. */
  onLogout?(userId: string, deviceId: string): Done;
  /** Receives accounts that are deactivated, and those that administrators activate again. */
  onDeactivation?(userId: string, isDeactivated: boolean, byAdmin: boolean): Done;
  /** @param profile all fields, after the change */
  onProfile?(userId: string, profile: JsonObject): Done;
  onAddressAdded?(userId: string, medium: string, address: string): Done;
  onAddressRemoved?(userId: string, medium: string, address: string): Done;
  /** @param roomId absent for account data that belongs to no room @param content empty when it was deleted */
  onAccountData?(userId: string, roomId: string | undefined, type: string, content: JsonObject): Done;
}
