import { childrenOf, parseXml } from '../xml.ts';

/**
 * Returns the entity id that a response, or else its assertion, claims as its issuer; `undefined` when it names none.
 * Nothing is verified.
 * @throws Error for invalid XML
 */
export function issuerOf(xml: string): string | undefined {
  const response = parseXml(xml);
  const [issuer] = [response, ...childrenOf(response, 'Assertion')].flatMap((element) =>
    childrenOf(element, 'Issuer'),
  );
  return issuer?.text;
}
