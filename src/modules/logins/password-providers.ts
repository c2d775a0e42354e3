import {
  type AccountReader,
  activeAccount,
  type LoginType,
  type PasswordAuthority,
  userIdFromInput,
} from '../../accounts/index.ts';
import { forbidden, isJsonObject, type JsonObject, missingParam } from '../../protocol/index.ts';
import { unlessNone } from '../accounts/account-checks.ts';
import type { LoginAttempt, PasswordProvider } from '../api/index.ts';
import { firstAnswer } from '../calls/call-all.ts';
import { CallbackFailure, type ModuleCalls } from '../calls/module-calls.ts';
import type { ModuleCallbacks, RegisteredCallbacks } from '../registered-callbacks.ts';

export interface ProvidersDeps {
  readonly callbacks: RegisteredCallbacks;
  readonly calls: ModuleCalls;
  readonly accounts: AccountReader;
  readonly serverName: string;
}

const passwordType = 'm.login.password';

/**
 * Returns the providers of passwords in the form that `m.login.password` calls; `undefined` where there are
 * none.
 */
export function passwordAuthority({ callbacks, calls }: ProvidersDeps): PasswordAuthority | undefined {
  const providers = providersOf(callbacks, passwordType);
  const byAddress = callbacks.passwordProviders.flatMap(({ module, callbacks: provider }) => {
    const authenticate = provider.authenticateAddress?.bind(provider);
    return authenticate ? [{ module, callbacks: authenticate }] : [];
  });
  if (providers.length + byAddress.length === 0) return undefined;
  return {
    authenticateAddress: unlessNone(byAddress, (medium, address, password) =>
      firstAnswer(
        calls,
        'authenticateAddress',
        byAddress,
        (authenticate) => authenticate(medium, address, password),
        (userId) => typeof userId === 'string',
      ),
    ),
    authenticate: (userId, password, body) =>
      firstUser(providers, calls, { userId, type: passwordType, fields: { password }, body }),
  };
}

/** Returns the login types that only modules provide. */
export function moduleLoginTypes({ callbacks, calls, accounts, serverName }: ProvidersDeps): LoginType[] {
  const types = new Set(
    callbacks.passwordProviders.flatMap(({ callbacks: { loginTypes } }) => Object.keys(loginTypes)),
  );
  types.delete(passwordType);
  return [...types].map(
    (type): LoginType => ({
      type,
      isOffered: true,
      async login(body) {
        const userId = userIdFromInput(userNameIn(body), serverName);
        const providers = providersOf(callbacks, type);
        const names = new Set(providers.flatMap(({ callbacks: { loginTypes } }) => loginTypes[type] ?? []));
        const fields = Object.fromEntries([...names].map((name) => [name, textIn(body, name)]));
        const found = await firstUser(providers, calls, { userId, type, fields, body });
        if (found === undefined) throw forbidden('The login was not accepted');
        await activeAccount(accounts, found);
        return { userId: found };
      },
    }),
  );
}

const providersOf = (callbacks: RegisteredCallbacks, type: string) =>
  callbacks.passwordProviders.filter(({ callbacks: { loginTypes } }) => Object.hasOwn(loginTypes, type));

/** Calls providers one after the other. @returns the user of the first one that accepts the login */
async function firstUser(
  providers: readonly ModuleCallbacks<PasswordProvider>[],
  calls: ModuleCalls,
  attempt: LoginAttempt,
): Promise<string | undefined> {
  for (const { module, callbacks: provider } of providers) {
    try {
      const userId = await calls.run(module, 'authenticate', () => provider.authenticate(attempt));
      if (typeof userId === 'string') return userId;
    } catch (error) {
      if (!(error instanceof CallbackFailure)) throw error;
    }
  }
  return undefined;
}

/** @throws MatrixError M_MISSING_PARAM */
function userNameIn(body: JsonObject): string {
  const { identifier } = body;
  if (isJsonObject(identifier) && identifier['type'] === 'm.id.user') return textIn(identifier, 'user');
  return textIn(body, 'user');
}

/** @throws MatrixError M_MISSING_PARAM */
function textIn(object: JsonObject, name: string): string {
  const value = object[name];
  if (typeof value !== 'string') throw missingParam(`'${name}' is missing`);
  return value;
}
