import { XMLParser, XMLValidator } from 'fast-xml-parser';

/** An element of an XML document. Names are without the prefix of their namespace. */
export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly XmlElement[];
  /** The text directly in the element, without comments, trimmed. */
  readonly text: string;
}

type Node = Readonly<Record<string, unknown>>;

const attributesKey = ':@';
const textKey = '#text';

const options = {
  preserveOrder: true,
  ignoreAttributes: false,
  attributeNamePrefix: '',
  removeNSPrefix: true,
  parseTagValue: false,
  parseAttributeValue: false,
  trimValues: false,
  ignoreDeclaration: true,
  ignorePiTags: true,
  htmlEntities: false,
};

/**
 * Parses an XML document. A document with a document type is refused, so that it cannot define entities.
 * @returns the root element
 * @throws Error
 */
export function parseXml(text: string): XmlElement {
  if (/<!(DOCTYPE|ENTITY)/i.test(text)) throw new Error('XML with a document type is refused');
  const validity = XMLValidator.validate(text);
  if (validity !== true) throw new Error(`invalid XML: ${validity.err.msg}`);
  const nodes = new XMLParser(options).parse(text) as readonly Node[];
  const [root] = elementsOf(nodes);
  if (root === undefined) throw new Error('no XML document');
  return root;
}

/** Returns the child elements with a name. */
export const childrenOf = (element: XmlElement, name: string): XmlElement[] =>
  element.children.filter((child) => child.name === name);

function elementsOf(nodes: readonly Node[]): XmlElement[] {
  return nodes.flatMap((node) => {
    const name = Object.keys(node).find((key) => key !== attributesKey && key !== textKey);
    if (name === undefined) return [];
    const inside = node[name] as readonly Node[];
    const attributes = (node[attributesKey] ?? {}) as Readonly<Record<string, string>>;
    const text = inside
      .map((child) => String(child[textKey] ?? ''))
      .join('')
      .trim();
    return [{ name, attributes, children: elementsOf(inside), text }];
  });
}
