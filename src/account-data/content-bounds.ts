import { sizeOfJson } from '../kernel/caches/index.ts';
import { type JsonObject, tooLarge } from '../protocol/index.ts';
import { ignoredUserListType, maxIgnoredUsers, usersIn } from './ignored-user-list.ts';

/**
 * Types of account data with invite permissions: the type of the specification, the same type with its unstable name
 * (MSC4380), and the type of MSC4155, which has lists.
 */
export const invitePermissionTypes = [
  'm.invite_permission_config',
  'org.matrix.msc4380.invite_permission_config',
  'org.matrix.msc4155.invite_permission_config',
] as const;

/** Maximum estimated bytes of invite permissions in memory. Larger permissions would not fit into the cache. */
const maxPermissionBytes = 786_432;

/**
 * Checks the size of global account data that the server keeps in memory: ignored users and invite permissions. Accepts
 * all other types.
 * @throws MatrixError M_TOO_LARGE for too many ignored users or too large invite permissions
 */
export function checkContentBounds(type: string, content: JsonObject): void {
  if (type === ignoredUserListType && usersIn(content).length > maxIgnoredUsers)
    throw tooLarge(`A user ignores at most ${maxIgnoredUsers} users`);
  const isPermissions = (invitePermissionTypes as readonly string[]).includes(type);
  if (isPermissions && sizeOfJson(content) > maxPermissionBytes)
    throw tooLarge('The invite permissions have too many entries');
}
