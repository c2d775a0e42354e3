import {
  type AccountReader,
  appserviceLoginUnsupported,
  type LoginRequest,
  type LoginType,
  lockedAccount,
  userIdFromInput,
} from '../../accounts/index.ts';
import {
  badJson,
  forbidden,
  isJsonObject,
  type JsonObject,
  MatrixError,
  missingParam,
} from '../../protocol/index.ts';
import type { AppserviceRegistry } from '../registry.ts';

export interface ServiceLoginDeps {
  readonly registry: AppserviceRegistry;
  readonly accounts: Pick<AccountReader, 'getUser'>;
  readonly serverName: string;
}

/**
 * Logs in users of application services (`m.login.application_service`). Source: client-server API, "Appservice Login".
 */
export class ServiceLogin implements LoginType {
  readonly type = 'm.login.application_service';
  readonly #deps: ServiceLoginDeps;

  constructor(deps: ServiceLoginDeps) {
    this.#deps = deps;
  }

  /** True when at least one application service is registered. */
  get isOffered(): boolean {
    return !this.#deps.registry.isEmpty;
  }

  /** Exempts services from the rate limit by address, because they log in many users from one address. */
  readonly isUnlimited = true;

  /**
   * Authenticates a user of an application service. The request has the token of the service.
   * @throws MatrixError M_MISSING_TOKEN, M_UNKNOWN_TOKEN, M_APPSERVICE_LOGIN_UNSUPPORTED, M_MISSING_PARAM, M_BAD_JSON,
   * M_UNKNOWN, M_EXCLUSIVE, M_FORBIDDEN, M_USER_LOCKED
   */
  async login(body: JsonObject, { authenticate }: LoginRequest): Promise<{ userId: string }> {
    const { registry, accounts, serverName } = this.#deps;
    const requester = await authenticate();
    if (!requester) throw new MatrixError(401, 'M_MISSING_TOKEN', 'Missing access token');
    const service = requester.appservice === undefined ? undefined : registry.byId(requester.appservice);
    if (!service) {
      throw new MatrixError(
        401,
        'M_UNKNOWN_TOKEN',
        'The access token does not belong to an application service',
      );
    }
    if (service.registration.managesDevices) {
      throw appserviceLoginUnsupported('Create devices by PUT /devices/{deviceId}');
    }
    const userId = userIdFromInput(userIn(body), serverName);
    if (!service.mayActAs(userId)) {
      throw new MatrixError(
        400,
        'M_EXCLUSIVE',
        `${userId} is not in the namespaces of this application service`,
      );
    }
    const account = await accounts.getUser(userId);
    if (!account || account.isDeactivated) throw forbidden('The user is not registered, or is deactivated');
    if (account.isLocked) throw lockedAccount();
    return { userId };
  }
}

/** Returns the user that a login request names, also in the deprecated form without `identifier`. */
function userIn({ identifier, user }: JsonObject): string {
  if (identifier === undefined) {
    if (typeof user !== 'string') throw missingParam("'identifier' is missing");
    return user;
  }
  if (!isJsonObject(identifier)) throw badJson("'identifier' must be an object");
  const { type, user: userId } = identifier;
  if (type !== 'm.id.user' || typeof userId !== 'string') {
    throw new MatrixError(400, 'M_UNKNOWN', "'identifier' must have the type m.id.user and a user");
  }
  return userId;
}
