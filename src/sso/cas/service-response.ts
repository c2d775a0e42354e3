import { LoginFailure } from '../browser-logins/login-failure.ts';
import type { XmlElement } from '../xml.ts';

/** A user whom a CAS server has authenticated. */
export interface CasUser {
  readonly name: string;
  /**
   * Values of each attribute. Servers send attributes with protocol version 3, some servers also with earlier
   * versions.
   */
  readonly attributes: Readonly<Record<string, readonly string[]>>;
}

const refused = () => new LoginFailure('invalid_ticket', 'The CAS server does not accept the ticket');

const invalid = (cause?: unknown) =>
  new LoginFailure('invalid_response', 'The CAS server sent an invalid response', { cause });

/**
 * Reads the response to the validation of a ticket in protocol version 1: `yes` and the user name, or `no`.
 * @throws LoginFailure
 */
export function readTextResponse(text: string): CasUser {
  const [answer, name] = text.split('\n').map((line) => line.trim());
  if (answer !== 'yes' || !name) throw refused();
  return { name, attributes: {} };
}

/**
 * Reads the response to the validation of a ticket in protocol versions 2 and 3: an XML document.
 * @throws LoginFailure
 */
export async function readXmlResponse(text: string): Promise<CasUser> {
  const { childrenOf, parseXml } = await import('../xml.ts');
  let root: XmlElement;
  try {
    root = parseXml(text);
  } catch (cause) {
    throw invalid(cause);
  }
  if (root.name !== 'serviceResponse') throw invalid();
  const [success, ...others] = childrenOf(root, 'authenticationSuccess');
  if (success === undefined || others.length > 0) throw refused();
  const users = childrenOf(success, 'user');
  const name = users.length === 1 ? users[0]!.text : '';
  if (name === '') throw invalid();
  const attributes: Record<string, string[]> = Object.create(null);
  for (const attribute of childrenOf(success, 'attributes').flatMap(({ children }) => children)) {
    attributes[attribute.name] = [...(attributes[attribute.name] ?? []), attribute.text];
  }
  return { name, attributes };
}
