/**
 * Errcodes of the client-server API that the admin API may also use: all but those that only a few endpoints for users have.
 * Source: client-server API, "Standard error response".
 */
export const generalErrcodes: ReadonlySet<string> = new Set([
  'M_FORBIDDEN',
  'M_UNKNOWN_TOKEN',
  'M_MISSING_TOKEN',
  'M_BAD_JSON',
  'M_NOT_JSON',
  'M_NOT_FOUND',
  'M_LIMIT_EXCEEDED',
  'M_UNRECOGNIZED',
  'M_UNKNOWN',
  'M_UNAUTHORIZED',
  'M_USER_IN_USE',
  'M_INVALID_USERNAME',
  'M_ROOM_IN_USE',
  'M_INVALID_ROOM_STATE',
  'M_THREEPID_IN_USE',
  'M_MISSING_PARAM',
  'M_INVALID_PARAM',
  'M_TOO_LARGE',
  'M_EXCLUSIVE',
  'M_PROFILE_TOO_LARGE',
]);
