import { type Static, type TSchema, Type } from 'typebox';
import type { AccountsSlice, User } from '../../accounts/index.ts';
import { Reply, type Requester, type Route, type RouteRequest, route } from '../../kernel/http/index.ts';
import type { Profiles } from '../../profiles/index.ts';
import { forbidden, invalidParam, missingParam, notFound } from '../../protocol/index.ts';
import type { AccountMails } from '../account/account-pages.ts';
import type { CrossSigningResets } from '../cross-signing-resets.ts';
import type { AuthenticationService } from './authentication-service.ts';

export interface ProvisioningDeps {
  readonly service: Pick<AuthenticationService, 'isSharedSecret'>;
  readonly slice: Pick<AccountsSlice, 'accounts' | 'devices' | 'registration' | 'serverName'>;
  readonly profiles: Pick<Profiles, 'read' | 'set'>;
  readonly mails: Pick<AccountMails, 'addresses'> | undefined;
  readonly resets: CrossSigningResets;
}

const localpart = Type.String({ minLength: 1, maxLength: 255 });
const deviceId = Type.String({ minLength: 1, maxLength: 255 });
const name = Type.String({ maxLength: 1_000 });
const path = <P extends string>(end: P) => `/_server/mas/${end}` as const;

/**
 * The endpoints with which an authentication service creates and changes the users and devices that it manages. They
 * have the paths and bodies of the Matrix Authentication Service. Requests must present the shared secret.
 */
export function provisioningRoutes(deps: ProvisioningDeps): Route[] {
  return [...userRoutes(deps), ...profileRoutes(deps), ...deviceRoutes(deps)];
}

/**
 * Requires that a request presents the shared secret.
 * @throws MatrixError M_FORBIDDEN
 */
function requireService({ service }: ProvisioningDeps, { headers }: Pick<RouteRequest, 'headers'>): void {
  const secret = /^Bearer (.+)$/.exec(String(headers['authorization']))?.[1];
  if (secret === undefined || !service.isSharedSecret(secret)) {
    throw forbidden('Only the authentication service may do this');
  }
}

/**
 * Makes the route of a change to an existing user.
 * @param end the end of the path
 * @param fields of the body, besides `localpart`
 */
function change<S extends Record<string, TSchema>>(
  deps: ProvisioningDeps,
  end: string,
  fields: S,
  work: (user: User, body: Static<ReturnType<typeof Type.Object<S>>>) => Promise<Reply | object>,
): Route {
  return route(
    { method: 'POST', path: path(end), auth: 'none', body: Type.Object({ ...fields, localpart }) },
    async (request) => {
      requireService(deps, request);
      const body = request.body as Static<ReturnType<typeof Type.Object<S>>> & { localpart: string };
      return work(await userOf(deps, body.localpart), body);
    },
  );
}

const userIdOf = ({ slice }: ProvisioningDeps, localpart: string) => `@${localpart}:${slice.serverName}`;

/**
 * Returns the user with a localpart.
 * @throws MatrixError M_NOT_FOUND
 */
async function userOf(deps: ProvisioningDeps, localpart: string): Promise<User> {
  const user = localpart.includes('\0')
    ? undefined
    : await deps.slice.accounts.getUser(userIdOf(deps, localpart));
  if (user === undefined) throw notFound('No such user');
  return user;
}

function userRoutes(deps: ProvisioningDeps): Route[] {
  const { slice, profiles, resets } = deps;
  const { accounts, registration } = slice;
  return [
    route(
      { method: 'GET', path: path('query_user'), auth: 'none', query: Type.Object({ localpart }) },
      async (request) => {
        requireService(deps, request);
        const { userId, isSuspended, isDeactivated } = await userOf(deps, request.query.localpart);
        const { displayname, avatar_url } = await profiles.read(userId);
        return {
          user_id: userId,
          display_name: displayname ?? null,
          avatar_url: avatar_url ?? null,
          is_suspended: isSuspended,
          is_deactivated: isDeactivated,
        };
      },
    ),
    route(
      {
        method: 'GET',
        path: path('is_localpart_available'),
        auth: 'none',
        query: Type.Object({ localpart: Type.String({ default: '', maxLength: 1_000 }) }),
      },
      async (request) => {
        requireService(deps, request);
        if (request.query.localpart === '') throw missingParam("'localpart' is missing");
        await registration.checkAvailableForAdmin(request.query.localpart);
        return {};
      },
    ),
    provisionRoute(deps),
    change(deps, 'delete_user', { erase: Type.Boolean() }, async ({ userId }, { erase }) => {
      await accounts.deactivate(userId, { erase, byAdmin: true });
      return {};
    }),
    change(deps, 'reactivate_user', {}, async ({ userId }) => {
      await accounts.reactivate(userId, undefined);
      return {};
    }),
    change(deps, 'allow_cross_signing_reset', {}, async ({ userId }) => {
      await resets.allow(userId);
      return {};
    }),
  ];
}

const provisionBody = Type.Object({
  localpart,
  set_displayname: Type.Optional(name),
  unset_displayname: Type.Optional(Type.Boolean()),
  set_avatar_url: Type.Optional(name),
  unset_avatar_url: Type.Optional(Type.Boolean()),
  set_emails: Type.Optional(Type.Array(Type.String({ maxLength: 500 }), { maxItems: 100 })),
  unset_emails: Type.Optional(Type.Boolean()),
  locked: Type.Optional(Type.Boolean()),
});

/** Creates a user, or changes the fields that the service sends. */
function provisionRoute(deps: ProvisioningDeps): Route {
  const { accounts, registration } = deps.slice;
  return route(
    { method: 'POST', path: path('provision_user'), auth: 'none', body: provisionBody },
    async (request) => {
      requireService(deps, request);
      const { body } = request;
      checkExclusive(body);
      const existingUser = await accounts.getUser(userIdOf(deps, body.localpart));
      let userId = existingUser?.userId;
      if (userId === undefined) {
        const created = registration.userIdFor(body.localpart);
        await registration.create({ userId: created, displayName: body.set_displayname });
        userId = created;
      } else if (body.unset_displayname || body.set_displayname !== undefined) {
        await setField(
          deps,
          userId,
          'displayname',
          body.unset_displayname ? '' : (body.set_displayname ?? ''),
        );
      }
      if (body.unset_emails || body.set_emails !== undefined)
        await setEmails(deps, userId, body.set_emails ?? []);
      if (body.unset_avatar_url || body.set_avatar_url !== undefined) {
        await setField(deps, userId, 'avatar_url', body.unset_avatar_url ? '' : (body.set_avatar_url ?? ''));
      }
      if (body.locked !== undefined) await accounts.setLocked(userId, body.locked);
      return new Reply(existingUser === undefined ? 201 : 200, {});
    },
  );
}

/** @throws MatrixError M_INVALID_PARAM when the fields for setting and for unsetting a value are both present */
function checkExclusive(body: Static<typeof provisionBody>): void {
  for (const [set, unset] of [
    ['set_displayname', 'unset_displayname'],
    ['set_avatar_url', 'unset_avatar_url'],
    ['set_emails', 'unset_emails'],
  ] as const) {
    if (body[set] !== undefined && body[unset] !== undefined) {
      throw invalidParam(`${set} and ${unset} exclude each other`);
    }
  }
}

/** Replaces the mail addresses of a user; phone numbers stay. Does nothing on a server without mail addresses. */
async function setEmails(
  { mails }: ProvisioningDeps,
  userId: string,
  emails: readonly string[],
): Promise<void> {
  if (mails === undefined) return;
  const { addresses } = mails;
  const checked = await addresses.checkAll(
    userId,
    emails.map((address) => ({ medium: 'email', address })),
  );
  const others = (await addresses.list(userId)).filter(({ medium }) => medium !== 'email');
  const kept = others.map(({ medium, address, validated_at: validatedAt }) => ({
    medium,
    address,
    validatedAt,
  }));
  await addresses.replace(userId, [...checked, ...kept] as typeof checked);
}

/** Sets a profile field; an empty value removes the field. */
function setField(deps: ProvisioningDeps, userId: string, field: string, value: string): Promise<void> {
  return deps.profiles.set(serviceRequester(userId), userId, field, value);
}

/**
 * Returns a requester with the rights of an administrator, because the service makes changes that users may
 * not make themselves.
 */
const serviceRequester = (userId: string): Requester => ({
  userId,
  deviceId: undefined,
  isGuest: false,
  isAdmin: true,
  appservice: undefined,
  tokenId: undefined,
});

function profileRoutes(deps: ProvisioningDeps): Route[] {
  return [
    change(deps, 'set_displayname', { displayname: name }, async ({ userId }, { displayname }) => {
      await setField(deps, userId, 'displayname', displayname);
      return {};
    }),
    change(deps, 'unset_displayname', {}, async ({ userId }) => {
      await setField(deps, userId, 'displayname', '');
      return {};
    }),
  ];
}

function deviceRoutes(deps: ProvisioningDeps): Route[] {
  const { devices } = deps.slice;
  return [
    change(
      deps,
      'upsert_device',
      { device_id: deviceId, display_name: Type.Optional(Type.Union([name, Type.Null()])) },
      async ({ userId }, { device_id: id, display_name: given }) => {
        const displayName = given ?? undefined;
        const isNew = await devices.create({ userId, deviceId: id, displayName });
        if (!isNew && displayName !== undefined) await devices.rename(userId, id, displayName);
        return new Reply(isNew ? 201 : 200, {});
      },
    ),
    change(deps, 'delete_device', { device_id: deviceId }, async ({ userId }, { device_id: id }) => {
      await devices.remove(userId, [id]);
      return new Reply(204);
    }),
    change(
      deps,
      'update_device_display_name',
      { device_id: deviceId, display_name: name },
      async ({ userId }, { device_id: id, display_name: displayName }) => {
        await devices.rename(userId, id, displayName);
        return {};
      },
    ),
    change(
      deps,
      'sync_devices',
      { devices: Type.Array(deviceId, { maxItems: 10_000 }) },
      async ({ userId }, { devices: wanted }) => {
        const existing = await devices.list(userId);
        const existingIds = new Set(existing.map((device) => device.deviceId));
        const target = new Set(wanted);
        // The service does not know dehydrated devices, which have no session.
        const surplus = existing.filter((device) => !device.isDehydrated && !target.has(device.deviceId));
        if (surplus.length > 0)
          await devices.remove(
            userId,
            surplus.map((device) => device.deviceId),
          );
        const missing = [...target].filter((id) => !existingIds.has(id));
        await devices.createAll(userId, missing);
        return {};
      },
    ),
  ];
}
