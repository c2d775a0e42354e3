import { Parser } from 'htmlparser2';

/** The elements of a page that a preview is made from. */
export interface PageElements {
  /** Contents of `meta` by lower-case `property`, `name` or `itemprop …`; the first value of a repeated name. */
  readonly metas: ReadonlyMap<string, string>;
  readonly links: readonly { readonly rel: string; readonly href: string; readonly type: string }[];
  /** Text of the first `title`. */
  readonly title: string;
  /** Text of the first headings of the levels 1 to 3. */
  readonly headings: readonly string[];
  /** JSON-LD scripts. */
  readonly jsonLd: readonly string[];
  /** The images, each with its area in pixels; `undefined` where the page does not say width and height. */
  readonly images: readonly { readonly src: string; readonly area: number | undefined }[];
  /** Sources of frames. */
  readonly frames: readonly string[];
  /** The first paragraphs of the body, without navigation, scripts and the other elements of `skipped`. */
  readonly paragraphs: readonly string[];
  /** `href` of the first `base`. */
  readonly base: string | undefined;
}

/** Maximum numbers for one page. */
const bounds = {
  /** Elements of each kind. */
  elements: 200,
  /** Characters of the value of an attribute, and of a title or heading. */
  value: 4_096,
  /** Characters of the text of all paragraphs. */
  text: 4_096,
  jsonLdScripts: 5,
  /** Characters of a JSON-LD script. */
  jsonLd: 262_144,
};

/** Maximum nesting of elements. Reading ends at deeper nesting, because the parser's work grows with the depth. */
const maxDepth = 1_000;

/** Number of characters that are parsed between two checks of the depth. */
const pieceLength = 16_384;

/** Elements whose text does not describe a page. */
const skipped = new Set(
  'header nav aside footer script noscript style svg iframe video canvas picture template select'.split(' '),
);

/** Elements that do not end a paragraph. */
const inline = new Set(
  'a abbr b bdi bdo cite code em font i kbd mark q s small span strong sub sup time u var wbr'.split(' '),
);

const headings = new Set(['h1', 'h2', 'h3']);

/** Reads the elements of a page without building a tree. */
export function readPage(html: string): PageElements {
  const reader = new ElementCollector();
  const parser = new Parser({
    onopentag: (name, attributes) => reader.open(name, attributes),
    onclosetag: (name) => reader.close(name),
    ontext: (text) => reader.text(text),
  });
  for (let start = 0; start < html.length && reader.depth < maxDepth; start += pieceLength) {
    parser.write(html.slice(start, start + pieceLength));
  }
  parser.end();
  reader.endParagraph();
  return reader;
}

class ElementCollector implements PageElements {
  readonly metas = new Map<string, string>();
  readonly links: { rel: string; href: string; type: string }[] = [];
  readonly headings: string[] = [];
  readonly jsonLd: string[] = [];
  readonly images: { src: string; area: number | undefined }[] = [];
  readonly frames: string[] = [];
  readonly paragraphs: string[] = [];
  title = '';
  base: string | undefined;
  depth = 0;
  /** Number of open elements whose text is skipped. */
  #skipped = 0;
  #isInBody = false;
  #paragraph = '';
  #textLength = 0;
  /** The element whose text is collected. */
  #collecting: { readonly name: string; readonly limit: number; text: string } | undefined;

  open(name: string, attributes: Readonly<Record<string, string>>): void {
    this.depth++;
    if (skipped.has(name)) this.#skipped++;
    if (!inline.has(name)) this.endParagraph();
    if (name === 'body') this.#isInBody = true;
    else if (name === 'meta') this.#addMeta(attributes);
    else if (name === 'link') this.#addLink(attributes);
    else if (name === 'base') this.base ??= attributes['href'];
    else if (name === 'img') this.#addImage(attributes);
    else if (name === 'iframe') this.#addFrame(attributes);
    else if (name === 'title' && this.title === '' && this.#skipped === 0) this.#collect(name, bounds.value);
    else if (headings.has(name) && this.headings.length < 3) this.#collect(name, bounds.value);
    else if (name === 'script' && this.jsonLd.length < bounds.jsonLdScripts) {
      if (attributes['type']?.trim().toLowerCase() === 'application/ld+json')
        this.#collect(name, bounds.jsonLd);
    }
  }

  close(name: string): void {
    this.depth--;
    if (skipped.has(name)) this.#skipped--;
    if (!inline.has(name)) this.endParagraph();
    if (this.#collecting?.name !== name) return;
    const { text } = this.#collecting;
    this.#collecting = undefined;
    if (name === 'script') this.jsonLd.push(text);
    else if (name === 'title') this.title = plain(text);
    else if (plain(text) !== '') this.headings.push(plain(text));
  }

  text(text: string): void {
    const collecting = this.#collecting;
    if (collecting && collecting.text.length < collecting.limit)
      collecting.text += text.slice(0, collecting.limit);
    if (!this.#isInBody || this.#skipped > 0 || this.#textLength >= bounds.text) return;
    this.#textLength += text.length;
    this.#paragraph += text.slice(0, bounds.text);
  }

  endParagraph(): void {
    const text = plain(this.#paragraph);
    this.#paragraph = '';
    if (text !== '') this.paragraphs.push(text);
  }

  #collect(name: string, limit: number): void {
    this.#collecting ??= { name, limit, text: '' };
  }

  #addMeta({ property, name, itemprop, content }: Readonly<Record<string, string>>): void {
    if (content === undefined || this.metas.size >= bounds.elements) return;
    for (const key of [property, name, itemprop === undefined ? undefined : `itemprop ${itemprop}`]) {
      const lower = key?.trim().toLowerCase();
      if (lower && lower.length <= 100 && !this.metas.has(lower))
        this.metas.set(lower, content.slice(0, bounds.value).trim());
    }
  }

  #addLink({ rel = '', href, type = '' }: Readonly<Record<string, string>>): void {
    if (href !== undefined && href.length <= bounds.value && this.links.length < bounds.elements)
      this.links.push({ rel: rel.toLowerCase(), href, type: type.trim().toLowerCase() });
  }

  #addImage({ src, width, height }: Readonly<Record<string, string>>): void {
    const sides = [pixels(width), pixels(height)].filter((side) => side !== undefined);
    // A width or height of at most one pixel suffices to recognize a line or a dot, which no preview shows.
    const isAreaKnown = sides.length === 2 || sides.some((side) => side <= 1);
    const area = isAreaKnown ? sides.reduce((product, side) => product * side, 1) : undefined;
    if (src && src.length <= bounds.value && this.images.length < bounds.elements)
      this.images.push({ src, area });
  }

  #addFrame({ src }: Readonly<Record<string, string>>): void {
    if (src && src.length <= bounds.value && this.frames.length < bounds.elements) this.frames.push(src);
  }
}

const pixels = (text = '') => (/^\d{1,5}(px)?$/.test(text.trim()) ? Number.parseInt(text, 10) : undefined);

/** Returns a text with each run of white space replaced by one space. */
export const plain = (text: string) => text.replace(/\s+/g, ' ').trim();
