import { LoginFailure } from '../browser-logins/login-failure.ts';

/** A user whom a CAS server has authenticated. */
export interface CasUser {
  readonly name: string;
  /** Attributes with their values; only with protocol version 3, or from servers that send them earlier. */
  readonly attributes: Readonly<Record<string, readonly string[]>>;
}

const invalid = (code: string, message: string, cause?: unknown) => new LoginFailure(code, message, { status: 400, cause });

/**
 * Reads the response to a validation of protocol version 1: `yes` and the user name, or `no`.
 * @throws LoginFailure
 */
export function readTextResponse(text: string): CasUser {
  const [answer, name] = text.split('\n').map((line) => line.trim());
  if (answer !== 'yes' || !name) throw invalid('invalid_ticket', 'The CAS server does not accept the ticket');
  return { name, attributes: {} };
}

/**
 * Reads the response to a validation of protocol versions 2 and 3, an XML document.
 * @throws LoginFailure
 */
export async function readXmlResponse(text: string): Promise<CasUser> {
  const { childrenOf, parseXml, textOf } = await import('../xml.ts');
  let root: Element;
  try {
    root = parseXml(text);
  } catch (cause) {
    throw invalid('invalid_response', 'The CAS server sent an invalid response', cause);
  }
  if (root.localName !== 'serviceResponse') throw invalid('invalid_response', 'The CAS server sent an invalid response');
  const success = childrenOf(root).filter(({ localName }) => localName === 'authenticationSuccess');
  if (success.length !== 1) throw invalid('invalid_ticket', 'The CAS server does not accept the ticket');
  const parts = childrenOf(success[0]!);
  const users = parts.filter(({ localName }) => localName === 'user');
  const name = users.length === 1 ? textOf(users[0]!) : '';
  if (name === '') throw invalid('invalid_response', 'The CAS server names no user');
  const attributes: Record<string, string[]> = Object.create(null);
  for (const group of parts.filter(({ localName }) => localName === 'attributes')) {
    for (const attribute of childrenOf(group)) (attributes[attribute.localName!] ??= []).push(textOf(attribute));
  }
  return { name, attributes };
}
