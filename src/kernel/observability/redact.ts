/** Query parameters that carry credentials, in lowercase. */
const secretParameters: ReadonlySet<string> = new Set([
  'access_token',
  'client_secret',
  'code',
  'hs_token',
  'login_token',
  'logintoken',
  'password',
  'refresh_token',
  'session',
  'state',
  'ticket',
  'token',
]);

/** A path with a registration token. */
const secretPath = /^(.*\/registration_tokens\/)(?!new(?:\/|$))[^/]+/;

/** Returns the URL with credentials in the path and in query parameters replaced, for logs. */
export function redactUrl(url: string): string {
  const start = url.indexOf('?');
  const path = (start === -1 ? url : url.slice(0, start)).replace(secretPath, '$1<redacted>');
  if (start === -1) return path;
  const parameters = url.slice(start + 1).split('&');
  return `${path}?${parameters.map(redactParameter).join('&')}`;
}

function redactParameter(parameter: string): string {
  const end = parameter.indexOf('=');
  if (end === -1) return parameter;
  const name = parameter.slice(0, end);
  return secretParameters.has(decode(name).toLowerCase()) ? `${name}=<redacted>` : parameter;
}

function decode(name: string): string {
  if (!name.includes('%')) return name;
  try {
    return decodeURIComponent(name);
  } catch {
    return name;
  }
}
