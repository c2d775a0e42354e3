import { DOMParser } from '@xmldom/xmldom';

/**
 * Parses an XML document without a document type, so that it has no entities of its own.
 * @returns the root element
 * @throws Error
 */
export function parseXml(text: string): Element {
  if (/<!(DOCTYPE|ENTITY)/i.test(text)) throw new Error('XML with a document type is refused');
  const fail = (message: string) => {
    throw new Error(message);
  };
  const parser = new DOMParser({ errorHandler: { warning: () => undefined, error: fail, fatalError: fail } });
  const root = parser.parseFromString(text, 'text/xml')?.documentElement;
  if (!root) throw new Error('no XML document');
  return root as unknown as Element;
}

/** The child elements of an element. */
export const childrenOf = (element: Element): Element[] =>
  Array.from(element.childNodes as unknown as ArrayLike<Node>).filter(
    (node): node is Element => node.nodeType === 1,
  );

/** The text of an element, without comments, trimmed. */
export const textOf = (element: Element): string => (element.textContent ?? '').trim();
